// What a run of the lab means: the metrics of docs/schemes.md from what the engine counted and timed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lab/engine/run_result.h"
#include "lab/report/victims.h"
#include "lab/scenario/experiment.h"

namespace heddle::lab {

// Keeps references: experiment and result must outlive it.
class Report {
 public:
  Report(const Experiment& experiment, const RunResult& result);

  // All fields of docs/formats.md, "Results of the lab". What does not apply, or cannot be measured yet, is null.
  // Byte-identical for the same seed but for wall_s, hops_per_s, peak_rss_mib and threads.
  nlohmann::ordered_json to_json() const;

  // One line per flow, in the order of the workload's messages, each beginning with `prefix`; columns as in
  // flows_csv_header.
  std::string flows_csv(const std::string& prefix) const;
  // One line per pause of a port, in the order of time, likewise (pauses_csv_header).
  std::string pauses_csv(const std::string& prefix) const;

 private:
  nlohmann::ordered_json flow_json() const;
  nlohmann::ordered_json jobs_json() const;
  void put_makespan(nlohmann::ordered_json& json) const;
  // Flow control (flow_control.cc).
  void put_flow_control(nlohmann::ordered_json& json) const;
  void put_deadlock(nlohmann::ordered_json& json) const;
  nlohmann::ordered_json watchdog_json() const;
  std::vector<std::string> explain_violations() const;
  nlohmann::ordered_json failure_json() const;
  // Pauses of others (pauses.cc).
  nlohmann::ordered_json victims_json() const;
  const HeldFlow* held_flow(MessageId message) const;
  // Credits (credits.cc).
  void put_credits(nlohmann::ordered_json& json) const;
  nlohmann::ordered_json congestion_json() const;
  // Whether the run has noted what held packets back.
  bool logs_pauses() const { return is_infiniband() || experiment_.settings.switches.flow_control.pauses(); }
  bool is_infiniband() const { return experiment_.settings.hosts.link_layer == LinkLayer::kInfiniband; }
  void put_packets(nlohmann::ordered_json& json) const;
  void put_fabric(nlohmann::ordered_json& json) const;
  void put_balance(nlohmann::ordered_json& json) const;
  void put_paths(nlohmann::ordered_json& json) const;
  // Path probes (probes.cc).
  void put_probes(nlohmann::ordered_json& json) const;
  void put_speed(nlohmann::ordered_json& json) const;

  // When the last message of a job (of all if `job` is kAllJobs) was received; kNever if one was not.
  static constexpr uint32_t kAllJobs = UINT32_MAX;
  Time end_of(uint32_t job) const;

  const Experiment& experiment_;
  const RunResult& result_;
  std::vector<Duration> alone_;       // by message
  std::vector<HeldFlow> held_flows_;  // by pauses; ascending by message
};

// The header line of flows_csv, without a line end; its first columns are those of the prefix: "run,workload,scheme,".
std::string flows_csv_header();
std::string pauses_csv_header();

// The value that a share `p` of the sorted values does not exceed (nearest rank); 0 if there are none.
template <typename T>
T percentile(const std::vector<T>& sorted, double p);

// ---------------------------------------------------------------------------------------------------------------------

template <typename T>
T percentile(const std::vector<T>& sorted, double p) {
  if (sorted.empty()) return T{};
  const auto n = static_cast<double>(sorted.size());
  // 0.99 × 100 is 99.00000000000001 in doubles: take off what rounding may have added.
  auto rank = static_cast<size_t>(p * n * (1 - 1e-12));
  if (static_cast<double>(rank) < p * n * (1 - 1e-12)) ++rank;
  return sorted[rank == 0 ? 0 : rank - 1];
}

}  // namespace heddle::lab
