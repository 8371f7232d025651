#include "lab/scenario/build_workload.h"

#include <algorithm>

#include <fmt/format.h>

#include "lab/scenario/build_topology.h"
#include "lab/topology/import_text.h"
#include "lab/topology/link_state.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

BuiltWorkload import(const WorkloadFile& file, const std::string& place, const Topology& topology);
LinkEvent event_of(const HtsimFailure& failure, const Topology& topology);
std::vector<std::vector<HostId>> place(const std::vector<JobSpec>& jobs, uint32_t host_count);
Job make_job(const JobSpec& spec, std::vector<HostId> hosts, const Topology& topology, const LinkStates& at_start);

}  // namespace

BuiltWorkload build_workload(const Scenario& scenario, const Topology& topology, const std::vector<LinkEvent>& events) {
  const WorkloadSpec& spec = scenario.workload;
  if (spec.file) return import(*spec.file, spec.place, topology);
  const std::vector<std::vector<HostId>> hosts = place(spec.jobs, topology.host_count);
  const LinkStates at_start = states_at_start(topology, events);
  std::vector<Job> jobs;
  for (size_t i = 0; i < spec.jobs.size(); ++i) jobs.push_back(make_job(spec.jobs[i], hosts[i], topology, at_start));
  return {at_place(spec.place, "", [&] { return make_workload(topology.host_count, jobs); }), {}, {}};
}

namespace {

BuiltWorkload import(const WorkloadFile& file, const std::string& place, const Topology& topology) {
  return at_place(place, file.file, [&] {
    ImportedWorkload imported = import_workload(
        file.file, find_workload_format(file.format),
        {.host_count = topology.host_count, .file_ids = topology.file_ids, .subtract_start = file.subtract_start});
    BuiltWorkload built{std::move(imported.workload), {}, std::move(imported.warnings)};
    for (const HtsimFailure& failure : imported.failures) built.failures.push_back(event_of(failure, topology));
    return built;
  });
}

// htsim counts a tier's switches over the whole fabric and a switch's uplinks from 0, as the lab's fat-tree does.
LinkEvent event_of(const HtsimFailure& failure, const Topology& topology) {
  const std::string_view tier = failure.switch_type == "TOR" ? "edge" : failure.switch_type == "AGG" ? "agg" : "core";
  const std::string name = fmt::format("{}{}", tier, failure.switch_id);
  const auto node = find_node(topology, name);
  if (!node)
    throw_bad_input("a failure at {} {}, but the topology has no {}", failure.switch_type, failure.switch_id, name);
  const std::vector<PortIndex> uplinks = topology.uplinks(*node);
  if (failure.link_id >= uplinks.size()) {
    throw_bad_input("a failure of uplink {} of {}, which has {}", failure.link_id, name, uplinks.size());
  }
  return {.at = 0, .link = topology.ports[*node][uplinks[failure.link_id]], .kind = LinkEvent::Kind::kDown};
}

std::vector<std::vector<HostId>> place(const std::vector<JobSpec>& jobs, uint32_t host_count) {
  std::vector<std::vector<HostId>> placed(jobs.size());
  std::vector<bool> taken(host_count, false);
  const auto take = [&](size_t job, const std::vector<HostId>& hosts) {
    for (const HostId host : hosts) {
      if (host >= host_count) {
        throw_bad_input("{}: job {} on host {}; accepted: hosts 0 to {}", jobs[job].place, jobs[job].name, host,
                        host_count - 1);
      }
      taken[host] = true;
    }
  };
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].hosts) take(i, *jobs[i].hosts);
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    const JobSpec& job = jobs[i];
    Placement placement{job.placement, job.seed.value_or(1), {}};
    if (job.hosts) {
      placement.among = *job.hosts;
    } else {
      for (HostId host = 0; host < host_count; ++host) {
        if (!taken[host]) placement.among.push_back(host);
      }
    }
    const auto available = static_cast<uint32_t>(placement.among.size());
    const uint32_t ranks = job.ranks == 0 ? available : job.ranks;
    if (ranks > available || available == 0) {
      throw_bad_input("{}: job {} needs {} hosts and {} are left; accepted: fewer ranks, or hosts to share", job.place,
                      job.name, std::max(ranks, 2U), available);
    }
    placed[i] = at_place(job.place, "", [&] { return place_jobs(host_count, {ranks}, placement).front(); });
    take(i, placed[i]);
  }
  return placed;
}

// The rate that a load is a share of: of the slowest host's link, in its slower direction.
Rate slowest_host(const std::vector<HostId>& hosts, const Topology& topology, const LinkStates& at_start) {
  Rate slowest = kMaxLinkRate;
  for (const HostId host : hosts) {
    for (const bool from_a : {true, false}) {
      const Rate rate = at_start.rate(topology.ports[host][0], from_a);
      if (rate.bits_per_second() < slowest.bits_per_second()) slowest = rate;
    }
  }
  return slowest;
}

struct ReadSizes {
  SizeDistribution operator()(const SizesByName& sizes) const { return find_size_distribution(sizes.name); }
  SizeDistribution operator()(const SizesFixed& sizes) const { return SizeDistribution::constant(sizes.bytes); }
  SizeDistribution operator()(const SizesFromFile& sizes) const {
    return read_size_distribution(read_text_file(sizes.file), sizes.file, sizes.unit_bytes);
  }
};

Job make_job(const JobSpec& spec, std::vector<HostId> hosts, const Topology& topology, const LinkStates& at_start) {
  const uint64_t seed = spec.seed.value_or(1);
  Job job{spec.name, {std::move(hosts), spec.start}, spec.pattern};
  if (auto* permutation = std::get_if<Permutation>(&job.pattern)) permutation->seed = seed;
  if (auto* training = std::get_if<Training>(&job.pattern)) training->seed = seed;
  if (auto* poisson = std::get_if<Poisson>(&job.pattern)) {
    const SizesFromFile* file = std::get_if<SizesFromFile>(&spec.sizes);
    poisson->sizes =
        at_place(spec.place, file == nullptr ? "" : file->file, [&] { return std::visit(ReadSizes(), spec.sizes); });
    poisson->seed = seed;
    poisson->host_rate = slowest_host(job.ranks.hosts, topology, at_start);
  }
  return job;
}

}  // namespace
}  // namespace heddle::lab
