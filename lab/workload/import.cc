#include "lab/workload/import.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lab/workload/builder.h"
#include "lab/workload/flow_text.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

constexpr size_t kHpccColumns = 6;
constexpr size_t kConweaveColumns = 5;
constexpr Duration kUsualStart = 2 * kSecond;

struct FlowLine {
  HostId src;
  HostId dst;
  uint64_t bytes;
  Time start;
  int line;
};

using Words = std::vector<std::string_view>;

// Whom the numbers of a flow file mean.
class HostNumbers {
 public:
  explicit HostNumbers(const ImportOptions& options)
      : host_count_(options.host_count == 0 ? kMaxImportedHosts : options.host_count) {
    for (uint32_t node = 0; node < options.file_ids.size(); ++node) node_of_.emplace(options.file_ids[node], node);
  }

  HostId read(const TextReader& reader, std::string_view word, std::string_view what) const {
    if (node_of_.empty()) return static_cast<HostId>(reader.whole(word, what, 0, host_count_ - 1));
    const uint64_t number = reader.whole(word, what, 0, node_of_.rbegin()->first);
    const auto node = node_of_.find(static_cast<uint32_t>(number));
    if (node == node_of_.end()) reader.fail("{} {} is not in the topology; accepted: the numbers there", what, number);
    if (node->second >= host_count_) reader.fail("{} {} is a switch of the topology; accepted: hosts", what, number);
    return node->second;
  }

 private:
  uint32_t host_count_;
  std::map<uint32_t, uint32_t> node_of_;  // by number in the topology file; empty: numbers are HostIds
};

FlowLine read_flow(const TextReader& reader, const Words& words, size_t columns, const HostNumbers& numbers) {
  if (words.size() != columns) reader.fail("{} columns; accepted: {}, as in the first flow", words.size(), columns);
  FlowLine flow{};
  flow.src = numbers.read(reader, words[0], "source host");
  flow.dst = numbers.read(reader, words[1], "destination host");
  flow.bytes = reader.whole(words[columns - 2], "size", 1, kMaxMessageBytes);
  flow.start = seconds(reader, words[columns - 1], "start");
  flow.line = reader.line();
  if (flow.src == flow.dst) reader.fail("host {} cannot send to itself", words[0]);
  return flow;
}

size_t columns_of_first(const TextReader& reader, const Words& words) {
  if (words.size() != kHpccColumns && words.size() != kConweaveColumns) {
    reader.fail("{} columns; accepted: 6 (src dst group port bytes start) or 5 (src dst group bytes start)",
                words.size());
  }
  return words.size();
}

std::vector<FlowLine> read_flows(TextReader& reader, const ImportOptions& options, const std::string& file,
                                 std::vector<std::string>& warnings) {
  Words words;
  if (!next_statement(reader, words)) throw_bad_input("{}: empty; accepted: the number of flows, then flows", file);
  if (words.size() != 1) reader.fail("{} words; accepted: the number of flows alone", words.size());
  const uint64_t count = reader.whole(words[0], "number of flows", 1, kMaxMessages);
  const HostNumbers numbers(options);
  std::vector<FlowLine> flows;
  size_t columns = 0;
  while (flows.size() < count) {
    if (!next_statement(reader, words)) {
      throw_bad_input("{}: ends after {} flows; its first line says {}", file, flows.size(), count);
    }
    if (columns == 0) columns = columns_of_first(reader, words);
    flows.push_back(read_flow(reader, words, columns, numbers));
  }
  if (next_statement(reader, words)) {
    warnings.push_back(
        fmt::format("{}:{}: lines beyond the {} flows of the first line are ignored", file, reader.line(), count));
  }
  return flows;
}

Duration start_to_subtract(const std::vector<FlowLine>& flows, const std::optional<Duration>& wanted) {
  if (wanted) return *wanted;
  const bool all = std::all_of(flows.begin(), flows.end(), [](const FlowLine& f) { return f.start >= kUsualStart; });
  return all ? kUsualStart : 0;
}

}  // namespace

WorkloadFormat find_workload_format(std::string_view name) {
  if (name == "htsim") return WorkloadFormat::kHtsim;
  if (name == "hpcc" || name == "conweave") return WorkloadFormat::kFlows;
  throw_bad_input("no workload format \"{}\"; there are htsim, hpcc, conweave", name);
}

ImportedWorkload import_workload(const std::string& path, WorkloadFormat format, const ImportOptions& options) {
  const std::string text = read_text_file(path);
  return format == WorkloadFormat::kHtsim ? import_htsim_matrix(text, path, options)
                                          : import_flow_file(text, path, options);
}

ImportedWorkload import_flow_file(std::string_view text, const std::string& file, const ImportOptions& options) {
  ImportedWorkload imported;
  TextReader reader(text, file);
  const std::vector<FlowLine> flows = read_flows(reader, options, file, imported.warnings);
  const Duration subtract = start_to_subtract(flows, options.subtract_start);
  uint32_t hosts = options.host_count;
  if (hosts == 0) {
    for (const FlowLine& flow : flows) hosts = std::max({hosts, flow.src + 1, flow.dst + 1});
  }
  WorkloadBuilder builder(hosts);
  builder.add_job(job_name(file), false);
  for (const FlowLine& flow : flows) {
    if (flow.start < subtract) {
      throw_bad_input("{}:{}: starts at {} s, before the {} s to be taken off", file, flow.line, to_seconds(flow.start),
                      to_seconds(subtract));
    }
    builder.add_message(flow.src, flow.dst, flow.bytes, flow.start - subtract);
  }
  imported.workload = builder.finish();
  return imported;
}

}  // namespace heddle::lab
