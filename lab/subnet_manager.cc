#include "lab/subnet_manager.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lab/opensm.h"
#include "lab/subnet_check.h"
#include "lab/subnet_dumps.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

constexpr std::string_view kShortestPath = "shortest-path";
constexpr std::string_view kUpDown = "up-down";

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
  if (is_built_in(routing.engine)) {
    subnet.tables = routing.engine == kUpDown ? up_down_tables(topology, link_up, routing.lmc)
                                              : shortest_path_tables(topology, link_up, routing.lmc);
    subnet.by = "built in";
  } else {
    OpensmRun run =
        run_opensm(topology, link_up, {routing.engine, routing.lmc, options.qos, options.limit, options.interrupted});
    subnet.tables = std::move(run.tables);
    subnet.host_order = std::move(run.host_order);
    subnet.by = run.version + " over ibsim";
  }
  subnet.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return subnet;
}

}  // namespace heddle::lab
