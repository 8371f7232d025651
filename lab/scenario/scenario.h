// A scenario: everything that decides the result of a run, as a user writes it in YAML. docs/scenarios.md is the user's
// page of the same; the two must agree.
//
//   const Scenario scenario = load_scenario("permutation.yaml", {"fabric.scheduler=rps", "workload.size=4MB"});
//
// A scenario is what was written, with defaults filled in but nothing built: experiment.h turns it into a topology, a
// workload and settings, and finds what does not fit together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lab/engine/fabric_settings.h"
#include "lab/topology/builders.h"
#include "lab/topology/import.h"
#include "lab/workload/import.h"
#include "lab/workload/jobs.h"

namespace heddle::lab {

struct TopologyFile {
  std::string file;
  TopologyFormat format = TopologyFormat::kHtsim;
  int overhead = kEthernetOverhead;
  LinkSettings link;  // of an ibnetdiscover file: its rate where none is given, its delay everywhere
};

struct TopologySpec {
  std::variant<LeafSpineSettings, FatTreeSettings, RailSettings, SingleSwitchSettings, GraphSettings, TopologyFile>
      shape = LeafSpineSettings{.spines = 0, .oversubscription = 1};
  std::string place;  // "x.yaml:12", for errors found when it is built
};

// Where a Poisson job's flow sizes come from.
struct SizesByName {
  std::string name = "websearch";
};
struct SizesFromFile {
  std::string file;
  double unit_bytes = 1;
};
struct SizesFixed {
  uint64_t bytes = 0;
};
using SizesSpec = std::variant<SizesByName, SizesFromFile, SizesFixed>;

struct JobSpec {
  std::string name;
  std::string kind;                          // as written: "permutation", "all-reduce", …
  Pattern pattern;                           // seeds and host rate are filled in when it is built
  SizesSpec sizes;                           // of a Poisson job
  std::optional<std::vector<HostId>> hosts;  // the ranks' hosts; otherwise `ranks` hosts that no other job has
  uint32_t ranks = 0;                        // 0 = all that are left
  PlacementOrder placement = PlacementOrder::kInOrder;
  std::optional<uint64_t> seed;  // nothing: follows from the run's
  Time start = 0;
  std::string place;
};

struct WorkloadFile {
  std::string file;
  std::string format;  // "htsim", "hpcc" or "conweave"
  std::optional<Duration> subtract_start;
};

struct WorkloadSpec {
  std::vector<JobSpec> jobs;         // at least one, unless `file`
  std::optional<WorkloadFile> file;  // a whole workload by itself
  bool is_list = false;              // written as a list of jobs
  std::string place;
};

struct EventSpec {
  Time at = 0;
  std::optional<double> at_share;  // of a bench's condition: `at` is that share of the workload's lower bound
  std::string link;                // "leaf0-spine1": all links between the two; "leaf0:3": that port's
  LinkEvent::Kind kind = LinkEvent::Kind::kDown;
  Rate rate;
  double loss = 0;
  LinkDirection direction = LinkDirection::kBoth;  // kAToB: away from the node named first
  std::string place;
};

struct BenchSpec {
  std::vector<std::string> schemes;                             // empty: all (lab/bench.h)
  std::vector<std::pair<std::string, WorkloadSpec>> workloads;  // empty: the scenario's own
  std::vector<std::pair<std::string, WorkloadSpec>> further;    // compared only where `compare` says so
  std::vector<std::pair<std::string, std::vector<EventSpec>>>
      conditions;  // what may happen beside a workload; likewise
  // Names of workloads, "WORKLOAD/CONDITION" with what happens beside; "all": all of them; empty: `workloads` alone.
  std::vector<std::string> compare;
  std::string workloads_place;
};

struct Scenario {
  TopologySpec topology;
  SwitchSettings switches;
  // `hosts.out_of_order` is decided by `resolve`, if not written.
  HostSettings hosts;
  std::optional<OutOfOrder> out_of_order;
  OutOfOrder loss_recovery = OutOfOrder::kGoBackN;  // of hosts that expect packets in order; or kSelectiveRepeat
  WorkloadSpec workload;
  std::vector<EventSpec> events;
  RunSettings run;
  BenchSpec bench;
  std::string place;
};

// The sections of a scenario, by which a file is recognised as one.
const std::vector<std::string_view>& scenario_sections();

// Reads and checks a scenario; `overlays` are `section.key=value` texts. Throws bad input: one line with the place,
// what was found and what is accepted. File names in it are relative to the scenario's folder, those in overlays to the
// working directory.
Scenario load_scenario(const std::string& path, const std::vector<std::string>& overlays = {});
// The same from text; `name` stands for the file.
Scenario load_scenario_text(std::string_view text, const std::string& name,
                            const std::vector<std::string>& overlays = {});

// The effective scenario, defaults filled in. It is a scenario itself: loading it gives the same run.
nlohmann::ordered_json to_json(const Scenario& scenario);

// Decides what depends on other settings: what hosts do with packets out of order (any-order placement where the scheme
// takes a flow's packets over several paths, otherwise loss recovery), and every job's seed.
void resolve(Scenario& scenario);

// Whether packets of one queue pair take several paths: per-packet schedulers and host spraying.
bool reorders(const Scenario& scenario);

// "ecmp", "rps", "host-spray" (ecmp in the fabric), with "+gbn" or "+sr" for hosts that expect packets in order under a
// scheme that reorders, "+reseq" where the last switch puts them in order. Of a resolved scenario.
std::string scheme_name(const Scenario& scenario);

}  // namespace heddle::lab
