// Traffic written for other simulators: htsim's connection matrices, HPCC's and ConWeave's flow files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/workload/workload.h"

namespace heddle::lab {

enum class WorkloadFormat : uint8_t {
  kHtsim,  // "htsim": connection matrix, .cm
  kFlows,  // "hpcc" (six columns) and "conweave" (five): told apart by the file itself
};

// Throws bad input that lists the names.
WorkloadFormat find_workload_format(std::string_view name);

// A file's highest host when the topology does not say; bounds the memory a hostile file can ask for.
inline constexpr uint32_t kMaxImportedHosts = 65'536;

struct ImportOptions {
  uint32_t host_count = 0;  // of the topology; 0 = as many as the file speaks of

  // Of a topology with numbers of its own: its hosts', then its switches'. A flow file names hosts by them. Empty:
  // it names them by HostId.
  std::vector<uint32_t> file_ids{};

  // Taken off every start of a flow file. Files of HPCC and ConWeave begin at 2.0 s, the warm-up of their simulators;
  // so without a value 2.0 s are taken off if no flow starts earlier, and nothing otherwise. 0 keeps the file's times.
  std::optional<Duration> subtract_start{};
};

// A link that a connection matrix wants slow or dead from the beginning; which is up to the one who asks for it.
struct HtsimFailure {
  std::string switch_type;  // "TOR", "AGG" or "CORE"
  uint32_t switch_id = 0;
  uint32_t link_id = 0;  // uplink of that switch
};

struct ImportedWorkload {
  Workload workload;  // one job, named after the file
  std::vector<HtsimFailure> failures;
  std::vector<std::string> warnings;  // what the file asks for and the lab does not do, once each
};

// Opens and reads a file. All three throw bad input, "file:line: what was found, what is accepted", and nothing else,
// whatever the file holds.
ImportedWorkload import_workload(const std::string& path, WorkloadFormat format, const ImportOptions& options);

// `Nodes N`, `Connections C`, optionally `Triggers T` and `Failures F`, then in any order
//   src->dst [id n] start PS | trigger K  size BYTES  [send_done_trigger K] [recv_done_trigger K] [prio n]
//   trigger id K oneshot | multishot | barrier count N
//   failure switch_type TOR|AGG|CORE switch_id S link_id L
// A oneshot starts all its connections when its one cause is done; the k-th done cause of a multishot starts its k-th
// connection; a barrier starts all its connections when `count` causes are done. A trigger that can never start a
// connection, or would fire more often than it may, is refused. `prio` is ignored with a warning. Causes and
// connections of a barrier on several hosts meet at the source of its first connection: two trigger delays, as a
// message there and one back would need.
ImportedWorkload import_htsim_matrix(std::string_view text, const std::string& file, const ImportOptions& options);

// The number of flows, then a line each: `src dst priority_group destination_port bytes start_seconds`, or without the
// port; the first flow decides. Hosts have the numbers that they have in the topology file. Flows need not be sorted.
// Lines beyond the number are ignored with a warning. Priority group and port are not used: the scenario chooses class
// and ports.
ImportedWorkload import_flow_file(std::string_view text, const std::string& file, const ImportOptions& options);

}  // namespace heddle::lab
