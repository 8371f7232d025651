#include "lab/report/report.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lab/fabric/recovery.h"
#include "lab/ideal/alone_time.h"
#include "lab/topology/link_state.h"

namespace heddle::lab {
namespace {

using Json = nlohmann::ordered_json;

std::string_view word_of(RunResult::End end) {
  switch (end) {
    case RunResult::End::kDone:
      return "done";
    case RunResult::End::kTimeLimit:
      return "time-limit";
    case RunResult::End::kInterrupted:
      return "interrupted";
    case RunResult::End::kDeadlock:
      return "deadlock";
  }
  return "";
}

// `values` in the order of messages, in which they are summed.
template <typename T>
double mean(const std::vector<T>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0,
                                     [](double total, T value) { return total + static_cast<double>(value); });
  return sum / static_cast<double>(values.size());
}

Json microseconds(Time t) { return t == kNever ? Json() : Json(to_microseconds(t)); }

// The uplinks of the switches of one tier that carried something.
struct TierBalance {
  uint64_t switches = 0;
  uint64_t uplinks = 0;
  uint64_t idle = 0;
  double jain = 0;  // summed over switches
};

}  // namespace

Report::Report(const Experiment& experiment, const RunResult& result)
    : experiment_(experiment),
      result_(result),
      alone_(AloneTimes(experiment.topology, states_at_start(experiment.topology, experiment.settings.events),
                        experiment.settings.hosts)
                 .of(experiment.workload)),
      held_flows_(find_held_flows(experiment.topology, experiment.settings.events, experiment.workload, result.held)) {}

Json Report::to_json() const {
  Json json;
  json["version"] = HEDDLE_VERSION;
  json["scheme"] = scheme_name(experiment_.scenario);
  json["seed"] = experiment_.scenario.run.seed;
  json["ended"] = word_of(result_.end);
  json["ended_at_us"] = to_microseconds(result_.ended_at);
  json.update(flow_json());
  put_makespan(json);
  put_packets(json);
  put_fabric(json);
  put_paths(json);
  put_probes(json);
  json["jobs"] = jobs_json();
  put_speed(json);
  json["notes"] = experiment_.notes;
  for (const std::string& line : result_.notes) json["notes"].push_back(line);
  for (const std::string& line : explain_violations()) json["notes"].push_back(line);
  json["configuration"] = lab::to_json(experiment_.scenario);
  return json;
}

Json Report::flow_json() const {
  std::vector<Duration> times;
  std::vector<double> slowdowns;
  uint64_t flows = 0;
  double speed_sum = 0;  // of 1/slowdown
  for (MessageId m = 0; m < experiment_.workload.messages.size(); ++m) {
    if (experiment_.workload.messages[m].is_barrier()) continue;
    ++flows;
    const MessageTimes& at = result_.messages[m];
    if (at.sent == kNever) continue;
    const Duration took = at.sent - at.released;
    times.push_back(took);
    slowdowns.push_back(static_cast<double>(took) / static_cast<double>(alone_[m]));
    speed_sum += static_cast<double>(alone_[m]) / static_cast<double>(took);
  }
  Json json;
  json["flows"] = flows;
  json["completed"] = times.size();
  json["fct_us"] = json["slowdown"] = nullptr;
  if (!times.empty()) {
    const double mean_us = mean(times) / 1e6;
    const double mean_slowdown = mean(slowdowns);
    std::sort(times.begin(), times.end());
    std::sort(slowdowns.begin(), slowdowns.end());
    json["fct_us"] = {{"min", to_microseconds(times.front())},
                      {"mean", mean_us},
                      {"p50", to_microseconds(percentile(times, 0.5))},
                      {"p99", to_microseconds(percentile(times, 0.99))},
                      {"max", to_microseconds(times.back())}};
    json["slowdown"] = {
        {"mean", mean_slowdown}, {"p50", percentile(slowdowns, 0.5)}, {"p99", percentile(slowdowns, 0.99)}};
  }
  json["utilization"] = flows == 0 ? Json() : Json(speed_sum / static_cast<double>(flows));
  return json;
}

// Null where the end was not reached, or nothing was to be done.
Json efficiency(Time bound, Time end) {
  if (end == kNever || end == 0) return Json();
  return static_cast<double>(bound) / static_cast<double>(end);
}

void Report::put_makespan(Json& json) const {
  const Time end = end_of(kAllJobs);
  json["makespan_us"] = microseconds(end);
  json["lower_bound_us"] = to_microseconds(experiment_.bound.makespan);
  json["lower_bound_by"] = experiment_.bound.limit;
  json["efficiency"] = efficiency(experiment_.bound.makespan, end);
  uint64_t bytes = 0;
  for (MessageId m = 0; m < experiment_.workload.messages.size(); ++m) {
    if (result_.messages[m].received != kNever) bytes += experiment_.workload.messages[m].bytes;
  }
  const Time span = end == kNever ? result_.ended_at : end;
  json["goodput_gbps"] = span == 0 ? Json() : Json(static_cast<double>(bytes) * 8e3 / static_cast<double>(span));
  json["steady_goodput_gbps"] =
      result_.steady_time == 0
          ? Json()
          : Json(static_cast<double>(result_.steady_bytes) * 8e3 / static_cast<double>(result_.steady_time));
}

Time Report::end_of(uint32_t job) const {
  Time end = 0;
  for (MessageId m = 0; m < experiment_.workload.messages.size(); ++m) {
    const Message& message = experiment_.workload.messages[m];
    if (message.is_barrier() || (job != kAllJobs && message.job != job)) continue;
    end = std::max(end, result_.messages[m].received);  // kNever is the latest of all
  }
  return end;
}

Json Report::jobs_json() const {
  Json jobs = Json::array();
  const Workload& workload = experiment_.workload;
  for (uint32_t job = 0; job < workload.jobs.size(); ++job) {
    const Time end = end_of(job);
    const Time bound = experiment_.bound.job_end[job];
    jobs.push_back({{"name", workload.jobs[job]},
                    {"makespan_us", microseconds(end)},
                    {"lower_bound_us", to_microseconds(bound)},
                    {"efficiency", efficiency(bound, end)}});
  }
  return jobs;
}

void Report::put_packets(Json& json) const {
  Json drops = Json::object();
  uint64_t dropped = 0;
  for (size_t reason = 0; reason < kDropReasons; ++reason) {
    if (result_.drops[reason] == 0) continue;
    drops[std::string(name_of(static_cast<DropReason>(reason)))] = result_.drops[reason];
    dropped += result_.drops[reason];
  }
  json["drops"] = std::move(drops);
  put_flow_control(json);
  json["cnps"] = experiment_.settings.hosts.dcqcn ? Json(result_.cnps) : Json();
  json["out_of_order"] = {{"packets", result_.out_of_order_packets},
                          {"max_degree", result_.out_of_order_degree},
                          {"max_extent", result_.out_of_order_extent}};
  json["retransmitted"] = result_.retransmitted;
  json["resent_bytes"] = result_.retransmitted_bytes;
  json["timeouts"] = result_.timeouts;
  json["naks"] = result_.naks;
  json["duplicates"] = result_.duplicates;
  json["packets"] = {{"sent", result_.packets_sent},
                     {"data", result_.data_packets},
                     {"received", result_.packets_received},
                     {"dropped", dropped},
                     {"in_flight", result_.packets_in_flight}};
}

// How the run came through the first failure of a link.
Json Report::failure_json() const {
  const FabricSettings& settings = experiment_.settings;
  const auto recovery = recovery_of(experiment_.topology, settings.events, result_, settings.switches.sample_interval);
  if (!recovery) return nullptr;
  const auto optional_us = [](const std::optional<Duration>& time) {
    return time ? Json(to_microseconds(*time)) : Json();
  };
  const auto optional = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  return {{"at_us", to_microseconds(recovery->at)},
          {"link", link_name(experiment_.topology, recovery->link)},
          {"lost", recovery->lost},
          {"losing_us", to_microseconds(recovery->losing)},
          {"repaired_us", optional_us(recovery->repaired)},
          {"recovered_us", optional_us(recovery->recovered)},
          {"goodput_gbps", {{"before", optional(recovery->before_gbps)}, {"least", optional(recovery->least_gbps)}}}};
}

void Report::put_fabric(Json& json) const {
  json["uplink_imbalance"] = nullptr;
  if (!result_.imbalance.empty()) {
    std::vector<double> samples;
    for (const ImbalanceSample& sample : result_.imbalance) samples.push_back(sample.imbalance);
    const double mean_imbalance = mean(samples);
    std::sort(samples.begin(), samples.end());
    json["uplink_imbalance"] = {{"mean", mean_imbalance}, {"p99", percentile(samples, 0.99)}};
  }
  put_balance(json);
  json["peak_queue_bytes"] = result_.peak_queue_bytes;

  json["busiest_link"] = nullptr;
  double longest = 0;
  const auto consider = [&](LinkId link, NodeId from, uint64_t bytes, uint64_t packets, std::optional<Duration> busy) {
    const double us = busy ? to_microseconds(*busy)
                           : static_cast<double>(bytes) * 8e6 /
                                 static_cast<double>(experiment_.topology.links[link].rate.bits_per_second());
    if (us <= longest) return;
    longest = us;
    json["busiest_link"] = {{"link", link_name(experiment_.topology, link)},
                            {"from", experiment_.topology.nodes[from].name},
                            {"packets", packets},
                            {"bytes", bytes},
                            {"busy_us", us}};
  };
  for (LinkId link = 0; link < result_.links.size(); ++link) {
    const LinkLoad& load = result_.links[link];
    consider(link, experiment_.topology.links[link].a, load.a_to_b_bytes, load.a_to_b_packets, load.a_to_b_busy);
    consider(link, experiment_.topology.links[link].b, load.b_to_a_bytes, load.b_to_a_packets, load.b_to_a_busy);
  }
  put_credits(json);
  put_deadlock(json);
  json["failure"] = failure_json();
}

// How even the uplinks of each leaf and pod switch were, in intervals and over the whole run.
void Report::put_balance(Json& json) const {
  json["uplink_jain"] = json["uplink_share"] = nullptr;
  if (!result_.imbalance.empty()) {
    std::vector<double> samples;
    for (const ImbalanceSample& sample : result_.imbalance) samples.push_back(sample.jain);
    const double mean_jain = mean(samples);
    json["uplink_jain"] = {{"mean", mean_jain}, {"min", *std::min_element(samples.begin(), samples.end())}};
  }
  const Topology& topology = experiment_.topology;
  std::vector<double> shares;             // 1 = as much as the average uplink of its switch
  std::map<uint32_t, TierBalance> tiers;  // from the hosts upwards
  for (NodeId node = topology.host_count; node < topology.nodes.size(); ++node) {
    std::vector<double> bytes;
    for (const PortIndex port : topology.uplinks(node)) {
      const LinkId link = topology.ports[node][port];
      const LinkLoad& load = result_.links[link];
      bytes.push_back(static_cast<double>(topology.links[link].a == node ? load.a_to_b_bytes : load.b_to_a_bytes));
    }
    const double sum = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    if (bytes.size() < 2 || sum == 0) continue;
    TierBalance& tier = tiers[topology.nodes[node].tier];
    double squares = 0;
    for (const double of : bytes) {
      shares.push_back(of * static_cast<double>(bytes.size()) / sum);
      squares += of * of;
      tier.idle += of == 0 ? 1 : 0;
    }
    tier.switches++;
    tier.uplinks += bytes.size();
    tier.jain += sum * sum / (static_cast<double>(bytes.size()) * squares);
  }
  if (shares.empty()) return;
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  double squares = 0;
  for (const double share : shares) squares += share * share;
  json["uplink_share"] = {{"min", *least}, {"max", *most}, {"jain", static_cast<double>(shares.size()) / squares}};
  json["uplink_share"]["tiers"] = Json::array();
  for (const auto& [tier, of] : tiers) {
    json["uplink_share"]["tiers"].push_back({{"tier", tier},
                                             {"switches", of.switches},
                                             {"uplinks", of.uplinks},
                                             {"idle", of.idle},
                                             {"jain", of.jain / static_cast<double>(of.switches)}});
  }
}

void Report::put_paths(Json& json) const {
  json["flowlets"] = {
      {"begun", result_.flowlets}, {"reroutes", result_.reroutes}, {"collisions", result_.flowlet_collisions}};
  json["send_gaps"] = Json::array();
  for (unsigned i = 0; i < SendGaps::kLengths; ++i) {
    json["send_gaps"].push_back(
        {{"at_least_us", SendGaps::length(i) / kMicrosecond}, {"count", result_.gaps.at_least(i)}});
  }
  const lb::ResequencerTotals& r = result_.resequencer;
  json["resequencer"] = nullptr;
  if (!experiment_.settings.switches.resequencer.enabled) return;
  json["resequencer"] = {
      {"in_order", r.in_order},     {"held", r.held}, {"released", r.released}, {"timed_out", r.timed_out},
      {"overflowed", r.overflowed}, {"late", r.late}, {"resyncs", r.resyncs},   {"unknown", r.unknown},
      {"max_degree", r.max_degree}};
}

void Report::put_speed(Json& json) const {
  json["packet_hops"] = result_.packet_hops;
  json["wall_s"] = result_.wall_seconds;
  json["hops_per_s"] =
      result_.wall_seconds > 0 ? Json(static_cast<double>(result_.packet_hops) / result_.wall_seconds) : Json();
  json["peak_rss_mib"] = static_cast<double>(result_.peak_rss_bytes) / 0x1p20;
  json["threads"] = result_.threads;
}

std::string flows_csv_header() {
  return "run,workload,scheme,flow,job,phase,src,dst,bytes,release_us,received_us,sent_us,fct_us,alone_us,slowdown,"
         "held_us,held_by_others_us";
}

std::string Report::flows_csv(const std::string& prefix) const {
  fmt::memory_buffer out;
  const auto put_time = [&out](Time t) {  // picoseconds as microseconds, exactly
    if (t != kNever) fmt::format_to(std::back_inserter(out), "{}.{:06}", t / kMicrosecond, t % kMicrosecond);
    out.push_back(',');
  };
  uint64_t flow = 0;
  for (MessageId m = 0; m < experiment_.workload.messages.size(); ++m) {
    const Message& message = experiment_.workload.messages[m];
    if (message.is_barrier()) continue;
    const MessageTimes& at = result_.messages[m];
    const Duration took = at.sent == kNever ? kNever : at.sent - at.released;
    fmt::format_to(std::back_inserter(out), "{}{},{},{},{},{},{},", prefix, flow++,
                   experiment_.workload.jobs[message.job], message.phase, message.src, message.dst, message.bytes);
    for (const Time t : {at.released, at.received, at.sent, took, alone_[m]}) put_time(t);
    if (took != kNever) {
      fmt::format_to(std::back_inserter(out), "{:.6f}", static_cast<double>(took) / static_cast<double>(alone_[m]));
    }
    out.push_back(',');
    const HeldFlow* held = held_flow(m);
    const Time none = logs_pauses() ? 0 : kNever;
    put_time(held == nullptr ? none : held->held);
    put_time(held == nullptr ? none : held->by_others);
    out.resize(out.size() - 1);  // the comma after the last
    out.push_back('\n');
  }
  return fmt::to_string(out);
}

}  // namespace heddle::lab
