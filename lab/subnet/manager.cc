#include "lab/subnet/manager.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "lab/subnet/check.h"
#include "lab/subnet/dumps.h"
#include "lab/subnet/ibnetdiscover.h"
#include "lab/subnet/opensm.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

constexpr std::string_view kShortestPath = "shortest-path";
constexpr std::string_view kUpDown = "up-down";

// What OpenSM has computed lately in this process, by everything that it was told: a bench runs many scenarios on one
// fabric, and every run asks again.
class Memory {
 public:
  const ManagedSubnet* find(const std::string& key) const {
    const auto place = std::find_if(kept_.begin(), kept_.end(), [&](const auto& entry) { return entry.first == key; });
    return place == kept_.end() ? nullptr : &place->second;
  }
  void keep(std::string key, ManagedSubnet subnet) {
    constexpr size_t kMost = 4;
    if (kept_.size() == kMost) kept_.erase(kept_.begin());
    kept_.emplace_back(std::move(key), std::move(subnet));
  }

 private:
  std::vector<std::pair<std::string, ManagedSubnet>> kept_;  // the oldest first
};

ManagedSubnet manage_by_opensm(const Topology& topology, const std::vector<bool>& link_up, const SubnetRouting& routing,
                               const ManagerOptions& options) {
  static std::mutex one_at_a_time;
  static Memory memory;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  std::string key =
      fmt::format("{} {} {}\n{}", routing.engine, routing.lmc, options.qos, write_ibnetdiscover(topology, link_up));
  if (const ManagedSubnet* known = memory.find(key); known != nullptr) return *known;
  const auto begin = std::chrono::steady_clock::now();
  OpensmRun run =
      run_opensm(topology, link_up, {routing.engine, routing.lmc, options.qos, options.limit, options.interrupted});
  ManagedSubnet subnet;
  subnet.tables = std::move(run.tables);
  subnet.host_order = std::move(run.host_order);
  subnet.by = run.version + " over ibsim";
  subnet.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  memory.keep(std::move(key), subnet);
  return subnet;
}

}  // namespace

const std::vector<std::string_view>& subnet_engines() {
  static const std::vector<std::string_view> engines = [] {
    std::vector<std::string_view> all{kShortestPath, kUpDown};
    all.insert(all.end(), opensm_engines().begin(), opensm_engines().end());
    return all;
  }();
  return engines;
}

bool is_built_in(std::string_view engine) { return engine == kShortestPath || engine == kUpDown; }

ManagedSubnet manage_subnet(const Topology& topology, const std::vector<bool>& link_up, const SubnetRouting& routing,
                            const ManagerOptions& options) {
  ManagedSubnet subnet;
  if (!routing.directory.empty()) {
    subnet.tables = read_subnet_directory(topology, routing.directory);
    subnet.by = "tables in " + routing.directory;
    check_subnet(topology, link_up, subnet.tables);
    return subnet;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto& engines = subnet_engines();
  if (std::find(engines.begin(), engines.end(), routing.engine) == engines.end()) {
    throw_bad_input("subnet: no engine '{}'; accepted: {}", routing.engine, fmt::join(engines, ", "));
  }
  if (!is_built_in(routing.engine)) return manage_by_opensm(topology, link_up, routing, options);
  subnet.tables = routing.engine == kUpDown ? up_down_tables(topology, link_up, routing.lmc)
                                            : shortest_path_tables(topology, link_up, routing.lmc);
  subnet.by = "built in";
  subnet.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return subnet;
}

}  // namespace heddle::lab
