#include <gtest/gtest.h>

#include "lab/workload/builder.h"
#include "lab/workload/workload.h"
#include "net/error.h"
#include "tests/unit/lab/ideal/ideal_executor.h"

namespace heddle::lab {
namespace {

Workload two_in_a_row() {
  WorkloadBuilder builder(3);
  builder.add_job("job", false);
  const MessageId first = builder.add_message(0, 1, 100);
  const MessageId second = builder.add_message(1, 2, 100);
  builder.add_trigger({first, TriggerOn::kReceived}, second, 5);
  return builder.finish();
}

std::string error_of(const Workload& workload) {
  try {
    check_workload(workload, "here");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
    return error.what();
  }
  return "";
}

TEST(WorkloadBuilder, CountsTriggersAndNumbersPhases) {
  WorkloadBuilder builder(4);
  builder.add_job("job", false);
  const MessageId last = builder.add_message(3, 0, 1);  // added first, released last
  const MessageId a = builder.add_message(0, 2, 1);
  const MessageId b = builder.add_message(1, 2, 1);
  const MessageId barrier = builder.add_barrier(2);
  const MessageId c = builder.add_message(2, 3, 1);
  builder.add_trigger({c, TriggerOn::kReceived}, last);
  builder.add_trigger({a, TriggerOn::kReceived}, barrier);
  builder.add_trigger({b, TriggerOn::kReceived}, barrier);
  builder.add_trigger({barrier, TriggerOn::kReceived}, c);
  const Workload workload = builder.finish();
  const std::vector<uint32_t> phases{2, 0, 0, 0, 1};
  const std::vector<uint32_t> pending{1, 0, 0, 2, 1};
  for (MessageId m = 0; m < 5; ++m) {
    EXPECT_EQ(workload.messages[m].phase, phases[m]) << m;
    EXPECT_EQ(workload.messages[m].pending, pending[m]) << m;
  }
  ASSERT_EQ(workload.triggers_of(a).size(), 1U);
  EXPECT_EQ(workload.triggers_of(a)[0].to, barrier);
  EXPECT_TRUE(workload.triggers_of(last).empty());
}

TEST(WorkloadBuilder, KeepsTheOrderOfAMessagesTriggers) {
  WorkloadBuilder builder(8);
  builder.add_job("job", false);
  const MessageId from = builder.add_message(0, 1, 1);
  for (HostId host = 2; host < 8; ++host)
    builder.add_trigger({from, TriggerOn::kSent}, builder.add_message(host, 0, 1));
  const Workload workload = builder.finish();
  const auto triggers = workload.triggers_of(from);
  for (uint32_t i = 0; i < triggers.size(); ++i) EXPECT_EQ(triggers[i].to, i + 1);
}

TEST(WorkloadBuilder, RefusesMoreMessagesThanThereMayBe) {
  WorkloadBuilder builder(2);
  builder.add_job("job", false);
  builder.expect(kMaxMessages);
  EXPECT_THROW(builder.expect(kMaxMessages + 1), Error);
  builder.add_message(0, 1, 1);
  EXPECT_THROW(builder.expect(kMaxMessages), Error);
}

TEST(Workload, TopologicalOrderPutsCausesFirst) {
  WorkloadBuilder builder(4);
  builder.add_job("job", false);
  for (int i = 0; i < 50; ++i) builder.add_message(i % 4, (i + 1) % 4, 1);
  for (MessageId m = 0; m < 50; ++m) {
    // 7 and 50 have no common factor: position in the order of the triggers = m × 7 mod 50.
    if ((m * 7) % 50 != 49) {
      MessageId next = 0;
      while ((next * 7) % 50 != (m * 7) % 50 + 1) ++next;
      builder.add_trigger({m, TriggerOn::kReceived}, next);
    }
  }
  const Workload workload = builder.finish();
  const std::vector<MessageId> order = topological_order(workload);
  ASSERT_EQ(order.size(), 50U);
  for (uint32_t i = 0; i < 50; ++i) EXPECT_EQ((order[i] * 7) % 50, i);
}

TEST(Workload, SizesAddUp) {
  const Workload workload = two_in_a_row();
  const WorkloadSize size = size_of(workload);
  EXPECT_EQ(size.messages, 2U);
  EXPECT_EQ(size.barriers, 0U);
  EXPECT_EQ(size.triggers, 1U);
  EXPECT_EQ(size.bytes, 200U);
  EXPECT_EQ(size.phases, 2U);
  EXPECT_GE(size.memory_bytes, 2 * sizeof(Message) + sizeof(Trigger));
  EXPECT_EQ(bytes_sent_by_host(workload), (std::vector<uint64_t>{100, 100, 0}));
  EXPECT_EQ(bytes_received_by_host(workload), (std::vector<uint64_t>{0, 100, 100}));
}

// What the agreement on memory says: kMaxMessages and kMaxTriggers are chosen by these.
static_assert(sizeof(Message) == 40);
static_assert(sizeof(Trigger) == 24);

TEST(Workload, RefusesWhatCannotRun) {
  const struct {
    const char* what;
    void (*damage)(Workload&);
    const char* says;
  } rows[] = {
      {"a source beyond the hosts", [](Workload& w) { w.messages[0].src = 3; }, "hosts are 0 to 2"},
      {"a destination beyond the hosts", [](Workload& w) { w.messages[1].dst = 77; }, "hosts are 0 to 2"},
      {"no hosts at all", [](Workload& w) { w.host_count = 0; }, "no hosts"},
      {"no bytes between two hosts", [](Workload& w) { w.messages[0].bytes = 0; }, "at least 1 byte"},
      {"a message home", [](Workload& w) { w.messages[0].dst = 0; }, "to itself"},
      {"too many bytes", [](Workload& w) { w.messages[0].bytes = kMaxMessageBytes + 1; }, "at most"},
      {"a job that is not there", [](Workload& w) { w.messages[0].job = 1; }, "job 1"},
      {"a start after the end of time", [](Workload& w) { w.messages[0].start = kMaxDelay + 1; }, "latest possible"},
      {"a delay after the end of time", [](Workload& w) { w.triggers[0].delay = kMaxDelay + 1; }, "longer than"},
      {"more triggers awaited than there are", [](Workload& w) { w.messages[1].pending = 2; }, "2 triggers, but 1"},
      {"triggers that are not awaited", [](Workload& w) { w.messages[1].pending = 0; }, "0 triggers, but 1"},
      {"triggers awaited that do not exist", [](Workload& w) { w.messages[0].pending = 1; }, "1 triggers, but 0"},
      {"a phase before its cause's", [](Workload& w) { w.messages[1].phase = 0; }, "phase 0"},
      {"triggers out of order", [](Workload& w) { w.triggers[0].from = 1; }, "not sorted"},
      {"a trigger to nowhere", [](Workload& w) { w.triggers[0].to = 2; }, "missing message"},
      {"no index of triggers", [](Workload& w) { w.trigger_begin.clear(); }, "not sorted"},
      {"a job that does not say how it runs", [](Workload& w) { w.job_runs_in_steps.clear(); }, "say how they run"},
      {"a message that waits for itself",
       [](Workload& w) {
         w.triggers[0].to = 0;
         w.messages[0].pending = 1;
         w.messages[1].pending = 0;
         w.messages[1].phase = 0;
       },
       "message 0 waits for itself"},
  };
  ASSERT_EQ(error_of(two_in_a_row()), "");
  for (const auto& row : rows) {
    Workload workload = two_in_a_row();
    row.damage(workload);
    const std::string error = error_of(workload);
    EXPECT_EQ(error.rfind("here: ", 0), 0U) << row.what << ": " << error;
    EXPECT_NE(error.find(row.says), std::string::npos) << row.what << ": " << error;
  }
}

TEST(Workload, FindsAMessageOnACycleNotBehindIt) {
  WorkloadBuilder builder(4);
  builder.add_job("job", false);
  for (int i = 0; i < 6; ++i) builder.add_message(0, 1, 1);
  const auto trigger = [&](MessageId from, MessageId to) { builder.add_trigger({from, TriggerOn::kReceived}, to); };
  trigger(0, 1);  // leads to the cycle 2 → 3 → 4 → 2, which leads to 5
  trigger(1, 2);
  trigger(2, 3);
  trigger(3, 4);
  trigger(4, 2);
  trigger(4, 5);
  const Workload workload = builder.link();
  const auto found = find_cycle(workload);
  ASSERT_TRUE(found);
  EXPECT_GE(*found, 2U);
  EXPECT_LE(*found, 4U);
  EXPECT_THROW(topological_order(workload), Error);
  EXPECT_THROW(check_workload(workload), Error);
}

TEST(Workload, FirstTwoOfThreeReleaseAMessage) {
  WorkloadBuilder builder(5);
  builder.add_job("job", false);
  for (HostId host = 0; host < 3; ++host) builder.add_message(host, 3, 100 * (host + 1));
  const MessageId next = builder.add_message(3, 4, 1, 7);
  for (MessageId m = 0; m < 3; ++m) builder.add_trigger({m, TriggerOn::kReceived}, next, 2);
  builder.release_after(next, 2);
  const Workload workload = builder.finish();
  const IdealRun run = run_ideally(workload, {.per_byte = 10});
  EXPECT_TRUE(all_ran(run));
  EXPECT_EQ(run.released[next], 200U * 10 + 2 + 7);
}

}  // namespace
}  // namespace heddle::lab
