// The parameter sets of DCQCN; docs/schemes.md shows the same table.
#include <array>

#include "flowctl/dcqcn.h"

namespace heddle::flowctl {

namespace {

constexpr uint64_t kMbps = 1'000'000;

// The NIC model of HPCC's simulator (Li et al., SIGCOMM 2019) with the values of its authors' `dcqcn`.
constexpr DcqcnSettings hpcc() {
  DcqcnSettings set;
  set.alpha_interval = kMicrosecond;
  set.cut_interval = 4 * kMicrosecond;
  set.increase_interval = 300 * kMicrosecond;
  set.additive = Rate(20 * kMbps);
  set.hyper = Rate(200 * kMbps);
  set.min_rate = Rate(1000 * kMbps);
  return set;
}

// The same model as ConWeave's authors use it (Song et al., SIGCOMM 2023).
constexpr DcqcnSettings conweave() {
  DcqcnSettings set = hpcc();
  set.additive = Rate(40 * kMbps);
  set.hyper = Rate(100 * kMbps);
  set.min_rate = Rate(100 * kMbps);
  return set;
}

// The same model with the intervals of DCQCN's paper, HPCC's `dcqcn_paper`.
constexpr DcqcnSettings paper() {
  DcqcnSettings set = hpcc();
  set.alpha_interval = 50 * kMicrosecond;
  set.cut_interval = 50 * kMicrosecond;
  set.increase_interval = 55 * kMicrosecond;
  set.cnp_interval = 50 * kMicrosecond;
  return set;
}

// What ConnectX NICs ship with.
constexpr DcqcnSettings nvidia() {
  DcqcnSettings set;
  set.initial_alpha = 1023.0 / 1024;
  set.g = (1024.0 - 1019) / 1024;  // dce_tcp_g says how much of the old alpha is kept
  set.alpha_interval = kMicrosecond;
  set.cut_interval = 4 * kMicrosecond;
  set.increase_interval = 300 * kMicrosecond;
  set.byte_counter = 32'767;
  set.additive = Rate(5 * kMbps);
  set.hyper = Rate(50 * kMbps);
  set.min_rate = Rate(1 * kMbps);
  set.cnp_interval = 4 * kMicrosecond;
  return set;
}

constexpr std::array<DcqcnSet, 4> kSets{{
    {"hpcc", hpcc(), true, "alibaba-edu/High-Precision-Congestion-Control, simulation/run.py, dcqcn"},
    {"conweave", conweave(), true, "conweave-project/conweave-ns3, run.py"},
    {"paper", paper(), true,
     "alibaba-edu/High-Precision-Congestion-Control, simulation/run.py, dcqcn_paper; CNP interval from memory of the "
     "paper"},
    {"nvidia", nvidia(), false,
     "NVIDIA's documentation of ConnectX; additive and hyper increase and the CNP interval from memory"},
}};

Rate scaled(Rate at_100g, Rate line_rate) {
  const double factor = static_cast<double>(line_rate.bits_per_second()) / 100e9;
  return Rate(static_cast<uint64_t>(static_cast<double>(at_100g.bits_per_second()) * factor));
}

}  // namespace

std::span<const DcqcnSet> dcqcn_sets() { return kSets; }

const DcqcnSet* find_dcqcn_set(std::string_view name) {
  for (const DcqcnSet& set : kSets) {
    if (set.name == name) return &set;
  }
  return nullptr;
}

DcqcnSettings DcqcnSet::at(Rate line_rate) const {
  DcqcnSettings settings = at_100g;
  if (!scales || line_rate.is_unlimited()) return settings;
  settings.additive = scaled(at_100g.additive, line_rate);
  settings.hyper = scaled(at_100g.hyper, line_rate);
  return settings;
}

}  // namespace heddle::flowctl
