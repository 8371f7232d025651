#include "lab/workload/import.h"

#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>
#include <unistd.h>

#include "net/error.h"
#include "net/random.h"
#include "tests/unit/lab/ideal/ideal_executor.h"

namespace heddle::lab {
namespace {

ImportedWorkload htsim(const std::string& text, uint32_t hosts = 0) {
  return import_htsim_matrix(text, "file.cm", {.host_count = hosts});
}
ImportedWorkload flows(const std::string& text, const ImportOptions& options = {}) {
  return import_flow_file(text, "flows.txt", options);
}

std::string error_of(const std::function<void()>& import) {
  try {
    import();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kBadInput) << error.what();
    return error.what();
  }
  return "accepted";
}

// Small files written for these tests, in the shapes that htsim's generators produce.

TEST(HtsimMatrix, ReadsConnectionsWithStarts) {
  const auto imported = htsim(
      "Nodes 16\nConnections 3\n0->13 start 0 size 2000000\n"
      "13->0 id 2 start 1500000 size 5 prio 3\n# a comment\n\n15->1 start 2.5e+06 size 1");
  const Workload& workload = imported.workload;
  EXPECT_EQ(workload.host_count, 16U);
  ASSERT_EQ(workload.messages.size(), 3U);
  EXPECT_EQ(workload.messages[0].src, 0U);
  EXPECT_EQ(workload.messages[0].dst, 13U);
  EXPECT_EQ(workload.messages[0].bytes, 2'000'000U);
  EXPECT_EQ(workload.messages[1].start, 1'500'000U);  // picoseconds
  EXPECT_EQ(workload.messages[2].start, 2'500'000U);
  EXPECT_TRUE(workload.triggers.empty());
  ASSERT_EQ(imported.warnings.size(), 1U);
  EXPECT_NE(imported.warnings[0].find("file.cm:4: prio"), std::string::npos);
}

TEST(HtsimMatrix, TakesTheTopologysHosts) {
  EXPECT_EQ(htsim("Nodes 16\nConnections 1\n0->13 start 0 size 1\n", 64).workload.host_count, 64U);
  EXPECT_EQ(htsim("0->13 start 0 size 1\n").workload.host_count, 14U);
}

// Ring steps as gen_allreduce.py chains them: each message starts the next one, at another host, when it is sent.
TEST(HtsimMatrix, AOneshotStartsAllItsConnections) {
  const auto imported = htsim(
      "Nodes 4\nConnections 4\nTriggers 2\n"
      "0->1 id 1 start 0 size 1000 send_done_trigger 1\n"
      "1->2 id 2 trigger 1 size 1000 recv_done_trigger 2\n"
      "2->3 id 3 trigger 2 size 1000\n"
      "2->0 id 4 trigger 2 size 500\n"
      "trigger id 1 oneshot\ntrigger id 2 oneshot\n");
  const IdealRun run = run_ideally(imported.workload, {10, 100, 30, 7, false});
  EXPECT_TRUE(all_ran(run));
  const Duration first = 1000 * 10 + 100 + 30 + 7;  // sent: also the ACK's way; then to another host
  const Duration second = 1000 * 10 + 100;          // received, on the same host
  EXPECT_EQ(run.released, (std::vector<Time>{0, first, first + second, first + second}));
}

// Batches of connections as gen_serialn_alltoall.py makes them: as one of a batch ends, one of the next begins.
TEST(HtsimMatrix, AMultishotStartsOneConnectionEachTime) {
  const auto imported = htsim(
      "Nodes 5\nConnections 5\nTriggers 1\n"
      "0->1 id 1 start 0 size 300 send_done_trigger 7\n"
      "0->2 id 2 start 0 size 100 send_done_trigger 7\n"
      "0->3 id 3 start 0 size 200 send_done_trigger 7\n"
      "0->4 id 4 trigger 7 size 10\n"
      "0->1 id 5 trigger 7 size 10\n"
      "trigger id 7 multishot\n");
  const IdealRun run = run_ideally(imported.workload, {10, 0, 0, 0, false});
  EXPECT_TRUE(all_ran(run));
  EXPECT_EQ(run.released[3], 1000U);
  EXPECT_EQ(run.released[4], 2000U);
}

TEST(HtsimMatrix, ABarrierWaitsForItsCount) {
  const auto imported = htsim(
      "Nodes 6\nConnections 5\nTriggers 1\n"
      "0->3 id 1 start 0 size 100 recv_done_trigger 1\n"
      "1->3 id 2 start 0 size 300 recv_done_trigger 1\n"
      "2->3 id 3 start 0 size 200 recv_done_trigger 1\n"
      "3->4 id 4 trigger 1 size 10\n"
      "3->5 id 5 trigger 1 size 10\n"
      "trigger id 1 barrier count 3\n");
  const Workload& workload = imported.workload;
  EXPECT_EQ(size_of(workload).barriers, 1U);
  EXPECT_EQ(workload.triggers.size(), 5U);  // not 3 × 2
  const IdealRun run = run_ideally(workload, {10, 0, 0, 1000, false});
  EXPECT_TRUE(all_ran(run));
  EXPECT_EQ(run.released[3], 3000U);
  EXPECT_EQ(run.released[4], 3000U);
}

TEST(HtsimMatrix, ABarrierOfManyHostsGrowsWithTheirSum) {
  std::string text = "Nodes 1000\nConnections 1000\nTriggers 1\n";
  for (int i = 0; i < 500; ++i) text += fmt::format("{}->{} start 0 size 10 send_done_trigger 1\n", i, i + 500);
  for (int i = 0; i < 500; ++i) text += fmt::format("{}->{} trigger 1 size 10\n", i + 500, i);
  const auto imported = htsim(text + "trigger id 1 barrier count 500\n");
  EXPECT_EQ(imported.workload.triggers.size(), 1000U);
  EXPECT_TRUE(all_ran(run_ideally(imported.workload, {})));
}

TEST(HtsimMatrix, ReadsFailures) {
  const auto imported = htsim(
      "Nodes 4\nConnections 1\nFailures 2\nfailure switch_type AGG switch_id 3 link_id 1\n"
      "0->1 start 0 size 1\nfailure switch_type TOR switch_id 0 link_id 2\n");
  ASSERT_EQ(imported.failures.size(), 2U);
  EXPECT_EQ(imported.failures[0].switch_type, "AGG");
  EXPECT_EQ(imported.failures[0].switch_id, 3U);
  EXPECT_EQ(imported.failures[0].link_id, 1U);
  EXPECT_EQ(imported.failures[1].switch_type, "TOR");
}

TEST(HtsimMatrix, RefusesWithFileAndLine) {
  const std::string head = "Nodes 4\nConnections 1\n";
  const struct {
    const char* what;
    std::string text;
    const char* says;
  } rows[] = {
      {"nothing", "", "file.cm: holds no connections"},
      {"a host beyond the nodes", head + "0->4 start 0 size 1\n", "file.cm:3: destination"},
      {"a host that is no number", head + "a->1 start 0 size 1\n", "file.cm:3: source"},
      {"a negative host", head + "-1->1 start 0 size 1\n", "file.cm:3: source"},
      {"an arrow alone", head + "-> start 0 size 1\n", "file.cm:3: source"},
      {"a connection home", head + "1->1 start 0 size 1\n", "file.cm:3: node 1"},
      {"no size", head + "0->1 start 0\n", "file.cm:3: no size"},
      {"an endless size", head + "0->1 start 0 size 0\n", "file.cm:3: size"},
      {"a huge size", head + "0->1 start 0 size 99999999999999999999\n", "file.cm:3: size"},
      {"a key without value", head + "0->1 start 0 size\n", "file.cm:3: size is missing"},
      {"neither start nor trigger", head + "0->1 size 1\n", "file.cm:3: accepted: either"},
      {"both start and trigger", head + "0->1 start 0 trigger 1 size 1\n", "file.cm:3: accepted: either"},
      {"a negative start", head + "0->1 start -1 size 1\n", "file.cm:3: start"},
      {"an endless start", head + "0->1 start inf size 1\n", "file.cm:3: start"},
      {"an unknown key", head + "0->1 start 0 size 1 colour 3\n", "file.cm:3: 'colour'"},
      {"an unknown line", head + "0->1 start 0 size 1\nlink 3\n", "file.cm:4: 'link'"},
      {"id 0", head + "0->1 id 0 start 0 size 1\n", "file.cm:3: id"},
      {"trigger 0", head + "0->1 trigger 0 size 1\n", "file.cm:3: trigger"},
      {"fewer connections than said", head + "\n", "says 1 connections and holds 0"},
      {"more connections than said", head + "0->1 start 0 size 1\n0->2 start 0 size 1\n", "says 1 connections and"},
      {"other triggers than said", head + "Triggers 2\n0->1 start 0 size 1\ntrigger id 1 oneshot\n", "says 2 triggers"},
      {"other failures than said", head + "Failures 2\n0->1 start 0 size 1\n", "says 2 failures"},
      {"nodes too late", "Connections 1\n0->1 start 0 size 1\nNodes 4\n", "file.cm:3: Nodes after"},
      {"no nodes", "Nodes 0\n", "file.cm:1: number of nodes"},
      {"a trigger without id", head + "0->1 start 0 size 1\ntrigger oneshot\n", "file.cm:4: a trigger without id"},
      {"a trigger without kind", head + "0->1 start 0 size 1\ntrigger id 1\n", "file.cm:4: a trigger without kind"},
      {"a trigger of two kinds", head + "trigger id 1 oneshot barrier\n", "file.cm:3: accepted: one of"},
      {"a trigger with more", head + "trigger id 1 oneshot now\n", "file.cm:3: 'now'"},
      {"a barrier without count", head + "trigger id 1 barrier\n", "file.cm:3: a barrier without count"},
      {"a trigger twice", head + "trigger id 1 oneshot\ntrigger id 1 oneshot\n", "file.cm:4: trigger 1 is specified"},
      {"a trigger never specified", head + "0->1 start 0 size 1 send_done_trigger 5\n",
       "file.cm:3: trigger 5 is named"},
      {"a trigger that never fires", head + "0->1 trigger 5 size 1\ntrigger id 5 oneshot\n",
       "file.cm:4: trigger 5 never"},
      {"a oneshot that fires twice",
       "Nodes 4\n0->1 start 0 size 1 send_done_trigger 1\n0->2 start 0 size 1 send_done_trigger 1\n"
       "0->3 trigger 1 size 1\ntrigger id 1 oneshot\n",
       "file.cm:5: trigger 1 is a oneshot but fires 2 times"},
      {"a barrier that cannot fill",
       "Nodes 4\n0->1 start 0 size 1 send_done_trigger 1\n0->3 trigger 1 size 1\ntrigger id 1 barrier count 2\n",
       "file.cm:4: trigger 1 is a barrier of count 2, but 1"},
      {"a barrier that overflows",
       "Nodes 4\n0->1 start 0 size 1 send_done_trigger 1\n0->2 start 0 size 1 send_done_trigger 1\n"
       "trigger id 1 barrier count 1\n",
       "file.cm:4: trigger 1 is a barrier of count 1, but 2"},
      {"a multishot with too few shots",
       "Nodes 4\n0->1 start 0 size 1 send_done_trigger 1\n0->2 trigger 1 size 1\n0->3 trigger 1 size 1\n"
       "trigger id 1 multishot\n",
       "file.cm:5: trigger 1 starts 2 connections"},
      {"a cycle",
       "Nodes 4\n0->1 trigger 1 size 1 send_done_trigger 2\n1->2 trigger 2 size 1 send_done_trigger 1\n"
       "trigger id 1 oneshot\ntrigger id 2 oneshot\n",
       "waits for itself"},
      {"an unknown switch type", head + "failure switch_type LEAF\n", "file.cm:3: switch_type 'LEAF'"},
      {"a failure without type", head + "failure switch_id 3\n", "file.cm:3: a failure without switch_type"},
      {"a failure with more", head + "failure switch_type TOR port 3\n", "file.cm:3: 'port'"},
  };
  for (const auto& row : rows) {
    const std::string error = error_of([&] { htsim(row.text); });
    EXPECT_NE(error.find(row.says), std::string::npos) << row.what << ": " << error;
    EXPECT_EQ(error.rfind("file.cm:", 0), 0U) << row.what << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << row.what;
  }
  EXPECT_NE(error_of([] { htsim("Nodes 16\n0->13 start 0 size 1\n", 8); }).find("at most the topology's 8 hosts"),
            std::string::npos);
  EXPECT_NE(error_of([] { htsim("0->13 start 0 size 1\n", 8); }).find("file.cm:1: destination"), std::string::npos);
}

TEST(FlowFile, ReadsConweavesFiveColumnsAndHpccsSix) {
  const struct {
    const char* what;
    const char* text;
  } rows[] = {{"five columns", "2 \n127 32 3 8088 2.000000098\n30 121 3 2876 2.000000165\n"},
              {"six columns", "2\n127 32 3 100 8088 2.000000098\n30 121 3 100 2876 2.000000165\n"}};
  for (const auto& row : rows) {
    const auto imported = flows(row.text, {.host_count = 128});
    const Workload& workload = imported.workload;
    ASSERT_EQ(workload.messages.size(), 2U) << row.what;
    EXPECT_EQ(workload.host_count, 128U);
    EXPECT_EQ(workload.messages[0].src, 127U) << row.what;
    EXPECT_EQ(workload.messages[0].dst, 32U) << row.what;
    EXPECT_EQ(workload.messages[0].bytes, 8088U) << row.what;
    EXPECT_EQ(workload.messages[0].start, 98 * kNanosecond) << row.what;
    EXPECT_EQ(workload.messages[1].start, 165 * kNanosecond) << row.what;
    EXPECT_TRUE(imported.warnings.empty());
  }
  EXPECT_EQ(flows("1\n3 9 3 1 0.5\n").workload.host_count, 10U);
}

TEST(FlowFile, TakesOffTheWarmUpUnlessToldOtherwise) {
  const struct {
    const char* what;
    const char* text;
    std::optional<Duration> subtract;
    Time first;
    Time second;
  } rows[] = {
      {"all from 2 s on", "2\n0 1 3 1 2.0\n0 1 3 1 2.5\n", {}, 0, kSecond / 2},
      {"one before 2 s", "2\n0 1 3 1 1.999999999\n0 1 3 1 2.5\n", {}, 1'999'999'999'000, kSecond * 5 / 2},
      {"absolute", "2\n0 1 3 1 2.0\n0 1 3 1 2.5\n", Duration{0}, 2 * kSecond, kSecond * 5 / 2},
      {"another warm-up", "2\n0 1 3 1 2.0\n0 1 3 1 2.5\n", kSecond, kSecond, kSecond * 3 / 2},
      {"exponents, no point, many digits", "2\n0 1 3 1 1e-06\n0 1 3 1 0.0000000000015\n", {}, kMicrosecond, 2},
      {"not sorted", "2\n0 1 3 1 3\n0 1 3 1 2.25\n", {}, kSecond, kSecond / 4},
  };
  for (const auto& row : rows) {
    const auto imported = flows(row.text, {.host_count = 2, .subtract_start = row.subtract});
    EXPECT_EQ(imported.workload.messages[0].start, row.first) << row.what;
    EXPECT_EQ(imported.workload.messages[1].start, row.second) << row.what;
  }
}

TEST(FlowFile, IgnoresLinesBeyondTheCountWithAWarning) {
  const auto imported = flows("1\n0 1 3 5 0.1\n0 1 3 6 0.2\n0 1 3 7 0.3\n");
  EXPECT_EQ(imported.workload.messages.size(), 1U);
  ASSERT_EQ(imported.warnings.size(), 1U);
  EXPECT_NE(imported.warnings[0].find("flows.txt:3"), std::string::npos);
}

TEST(FlowFile, RefusesWithFileAndLine) {
  const struct {
    const char* what;
    const char* text;
    const char* says;
  } rows[] = {
      {"nothing", "", "flows.txt: empty"},
      {"a count that is none", "many\n", "flows.txt:1: number of flows"},
      {"a count of 0", "0\n", "flows.txt:1: number of flows"},
      {"a count beyond reason", "99999999999\n", "flows.txt:1: number of flows"},
      {"no count", "0 1 3 5 0.1\n", "flows.txt:1: 5 words"},
      {"fewer flows than said", "2\n0 1 3 5 0.1\n", "ends after 1 flows"},
      {"four columns", "1\n0 1 3 5\n", "flows.txt:2: 4 columns"},
      {"seven columns", "1\n0 1 3 100 5 0.1 9\n", "flows.txt:2: 7 columns"},
      {"another number of columns later", "2\n0 1 3 5 0.1\n0 1 3 100 5 0.1\n", "flows.txt:3: 6 columns"},
      {"a host beyond the fabric", "1\n0 8 3 5 0.1\n", "flows.txt:2: destination host"},
      {"a negative host", "1\n-1 2 3 5 0.1\n", "flows.txt:2: source host"},
      {"a flow home", "1\n2 2 3 5 0.1\n", "flows.txt:2: host 2"},
      {"no bytes", "1\n0 1 3 0 0.1\n", "flows.txt:2: size"},
      {"half a byte", "1\n0 1 3 1.5 0.1\n", "flows.txt:2: size"},
      {"a negative start", "1\n0 1 3 5 -0.1\n", "flows.txt:2: start"},
      {"a start that is none", "1\n0 1 3 5 1.2.3\n", "flows.txt:2: start"},
      {"an endless start", "1\n0 1 3 5 1e400\n", "flows.txt:2: start"},
      {"a start beyond time", "1\n0 1 3 5 99999999999999999999999\n", "flows.txt:2: start"},
  };
  for (const auto& row : rows) {
    const std::string error = error_of([&] { flows(row.text, {.host_count = 8}); });
    EXPECT_EQ(error.rfind("flows.txt", 0), 0U) << row.what << ": " << error;
    EXPECT_NE(error.find(row.says), std::string::npos) << row.what << ": " << error;
  }
  EXPECT_NE(error_of([] {
              flows("1\n0 1 3 5 0.1\n", {.host_count = 8, .subtract_start = kSecond});
            }).find("flows.txt:2: starts at 0.1 s"),
            std::string::npos);
}

// As HPCC's and ConWeave's generators write them: switches may have the lower numbers, and numbers may be missing.
TEST(FlowFile, HostsHaveTheNumbersOfTheTopologyFile) {
  const ImportOptions options{.host_count = 3, .file_ids = {2, 3, 6, 0, 1}};
  const auto imported = flows("2\n2 3 3 100 5 0.1\n6 2 3 100 5 0.1\n", options);
  EXPECT_EQ(imported.workload.host_count, 3U);
  ASSERT_EQ(imported.workload.messages.size(), 2U);
  EXPECT_EQ(imported.workload.messages[0].src, 0U);
  EXPECT_EQ(imported.workload.messages[0].dst, 1U);
  EXPECT_EQ(imported.workload.messages[1].src, 2U);
  EXPECT_EQ(imported.workload.messages[1].dst, 0U);

  const struct {
    const char* flow;
    const char* error;
  } rows[] = {
      {"1 3 3 5 0.1", "flows.txt:2: source host 1 is a switch of the topology; accepted: hosts"},
      {"2 0 3 5 0.1", "flows.txt:2: destination host 0 is a switch of the topology; accepted: hosts"},
      {"2 4 3 5 0.1", "flows.txt:2: destination host 4 is not in the topology; accepted: the numbers there"},
      {"7 2 3 5 0.1", "flows.txt:2: source host is '7'; accepted: a whole number from 0 to 6"},
      {"6 6 3 5 0.1", "flows.txt:2: host 6 cannot send to itself"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(error_of([&] { flows(std::string("1\n") + row.flow + "\n", options); }), row.error);
  }
}

// Whatever a file holds, an import ends in a workload that passes its checks or in bad input.
TEST(WorkloadImport, SurvivesDamagedFiles) {
  const std::string matrix =
      "Nodes 6\nConnections 5\nTriggers 2\nFailures 1\n0->3 id 1 start 0 size 100 recv_done_trigger 1\n"
      "1->3 id 2 start 5 size 300 recv_done_trigger 1\n2->3 id 3 start 0 size 200 send_done_trigger 2\n"
      "3->4 id 4 trigger 1 size 10 prio 7\n3->5 id 5 trigger 2 size 10\ntrigger id 1 barrier count 2\n"
      "trigger id 2 multishot\nfailure switch_type TOR switch_id 1 link_id 2\n";
  const std::string flow_file = "3\n1 2 3 100 2.0\n0 3 3 100 2.000000001\n5 1 3 4096 2.1\n";
  const std::string sizes = "0 0\n100 50\n1000 100\n";
  static constexpr char kBytes[] = "0123456789->. \n\t#e+abcdefNstrigger\r\0\x7f\xff";
  Random random(3);
  int accepted = 0;
  for (int round = 0; round < 30'000; ++round) {
    std::string text = round % 2 == 0 ? matrix : flow_file;
    const uint32_t damage = 1 + random.below(4);
    for (uint32_t i = 0; i < damage && !text.empty(); ++i) {
      const uint32_t at = random.below(static_cast<uint32_t>(text.size()));
      const uint32_t what = random.below(4);
      if (what == 0) text[at] = kBytes[random.below(sizeof(kBytes) - 1)];
      if (what == 1) text.erase(at, 1 + random.below(8));
      if (what == 2) text.insert(at, 1 + random.below(20), kBytes[random.below(sizeof(kBytes) - 1)]);
      if (what == 3) text.insert(at, text.substr(random.below(static_cast<uint32_t>(text.size())), random.below(40)));
    }
    try {
      const auto imported = round % 2 == 0 ? htsim(text, round % 3 == 0 ? 6 : 0) : flows(text, {.host_count = 6});
      check_workload(imported.workload);
      ++accepted;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kBadInput) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(accepted, 300);  // the damage is small enough for the checks behind the reading to be reached
}

TEST(WorkloadImport, OpensFilesByFormat) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("heddle-import-{}", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.cm") << "Nodes 4\nConnections 1\n0->1 start 0 size 1\n";
  std::ofstream(folder / "a.flow") << "1\n0 1 3 5 0.1\n";
  EXPECT_EQ(import_workload(folder / "a.cm", find_workload_format("htsim"), {}).workload.messages.size(), 1U);
  EXPECT_EQ(import_workload(folder / "a.flow", find_workload_format("hpcc"), {}).workload.messages.size(), 1U);
  EXPECT_EQ(import_workload(folder / "a.flow", find_workload_format("conweave"), {}).workload.messages.size(), 1U);
  EXPECT_EQ(import_workload(folder / "a.cm", WorkloadFormat::kHtsim, {}).workload.jobs[0], "a.cm");
  EXPECT_THROW(import_workload(folder / "missing", WorkloadFormat::kFlows, {}), Error);
  EXPECT_THROW(import_workload(folder, WorkloadFormat::kFlows, {}), Error);
  EXPECT_THROW(find_workload_format("pcap"), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace heddle::lab
