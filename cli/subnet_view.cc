#include "cli/subnet_view.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/tables.h"
#include "lab/subnet/check.h"
#include "lab/subnet/load.h"
#include "lab/subnet/loops.h"
#include "lab/subnet/tables.h"

namespace heddle::cli {
namespace {

Json reachability_json(const lab::SubnetCheck& check) {
  Json json{{"paths", check.pairs},          {"reachable", check.reachable}, {"dropped", check.dropped},
            {"looping", check.looping},      {"misled", check.misled},       {"most_hops", check.most_hops},
            {"mean_hops", check.mean_hops()}};
  if (!check.first.empty()) json["first"] = check.first;
  return json;
}

Json loops_json(const lab::Topology& topology, const lab::CreditLoops& loops) {
  Json json{{"channels", loops.channels},
            {"dependencies", loops.dependencies},
            {"channels_in_loops", loops.in_loops},
            {"shortest", loops.shortest.size()}};
  if (!loops.shortest.empty()) json["loop"] = lab::describe_loop(topology, loops.shortest);
  return json;
}

Json shifts_json(const lab::ShiftContention& shifts) {
  return {{"shifts", shifts.shifts},
          {"free_of_contention", shifts.free},
          {"mean_flows", shifts.mean},
          {"most_flows", shifts.most}};
}

Json loads_json(const lab::Topology& topology, const std::vector<bool>& link_up, const lab::SubnetTables& tables,
                const std::vector<lab::HostId>& order) {
  const lab::PathsPerLink paths = lab::count_paths(topology, link_up, tables);
  const lab::PermutationContention random = lab::permutation_contention(topology, tables, 1);
  Json json{
      {"engine", tables.engine},
      {"paths_per_link", {{"links", paths.links}, {"least", paths.least}, {"mean", paths.mean}, {"most", paths.most}}}};
  if (topology.host_count > 1) {
    json["shifts"] = shifts_json(lab::shift_contention(topology, tables, lab::natural_order(topology)));
  }
  if (order.size() > 1) json["shifts_in_ftree_order"] = shifts_json(lab::shift_contention(topology, tables, order));
  json["random_permutations"] = {
      {"permutations", random.permutations}, {"mean_most_flows", random.mean_most}, {"mean_share", random.mean_share}};
  return json;
}

std::string shifts_text(const Json& loads, const char* key) {
  if (!loads.contains(key)) return "-";
  const Json& shifts = loads.at(key);
  return fmt::format("{} / {:.2f}; {} of {} free", shifts.at("most_flows").get<uint64_t>(),
                     shifts.at("mean_flows").get<double>(), shifts.at("free_of_contention").get<uint64_t>(),
                     shifts.at("shifts").get<uint64_t>());
}

std::string loads_table(const Json& loads) {
  std::vector<Row> rows{{""},
                        {"paths per link, least / mean / most"},
                        {"shifts: most flows on a link, most / mean"},
                        {"shifts in ftree's order"},
                        {"random permutations: most flows / share"}};
  for (const Json& of : loads) {
    const Json& paths = of.at("paths_per_link");
    const Json& random = of.at("random_permutations");
    rows[0].push_back(of.at("engine"));
    rows[1].push_back(fmt::format("{} / {:.1f} / {}", paths.at("least").get<uint64_t>(), paths.at("mean").get<double>(),
                                  paths.at("most").get<uint64_t>()));
    rows[2].push_back(shifts_text(of, "shifts"));
    rows[3].push_back(shifts_text(of, "shifts_in_ftree_order"));
    rows[4].push_back(fmt::format("{:.2f} / {:.3f}", random.at("mean_most_flows").get<double>(),
                                  random.at("mean_share").get<double>()));
  }
  if (std::all_of(rows[3].begin() + 1, rows[3].end(), [](const std::string& cell) { return cell == "-"; })) {
    rows.erase(rows.begin() + 3);
  }
  return text_table(rows);
}

}  // namespace

Json subnet_json(const lab::Topology& topology, const std::vector<bool>& link_up, const lab::ManagedSubnet& subnet,
                 const std::vector<std::string>& without, const std::string& note) {
  const lab::SubnetTables& tables = subnet.tables;
  size_t lids = 0;
  for (const lab::SwitchTables& at : tables.switches) lids = std::max(lids, at.lft.size());
  Json json{{"hosts", topology.host_count},   {"switches", topology.switch_count()},
            {"links", topology.links.size()}, {"without_links", without},
            {"engine", tables.engine},        {"by", subnet.by}};
  if (!note.empty()) json["note"] = note;
  json.update(Json{{"seconds", subnet.seconds},
                   {"lmc", tables.lmc},
                   {"last_lid", lids == 0 ? 0 : lids - 1},
                   {"lanes", tables.lanes()},
                   {"vl_arbitration", !tables.host_vl_arbitration.empty()}});
  json["reachability"] = reachability_json(lab::check_subnet(topology, link_up, tables));
  json["credit_loops"] = loops_json(topology, lab::find_credit_loops(topology, tables));
  json["loads"] = Json::array({loads_json(topology, link_up, tables, subnet.host_order)});
  if (tables.engine != "shortest-path") {
    json["loads"].push_back(
        loads_json(topology, link_up, lab::shortest_path_tables(topology, link_up, tables.lmc), subnet.host_order));
  }
  return json;
}

std::string subnet_page(const Json& json) {
  std::string page;
  const auto line = [&](const char* name, const std::string& text) { page += fmt::format("{:<14} {}\n", name, text); };
  line("fabric", fmt::format("{} hosts, {} switches, {} links", json.at("hosts").get<uint64_t>(),
                             json.at("switches").get<uint64_t>(), json.at("links").get<uint64_t>()));
  for (const Json& link : json.at("without_links")) line("  without", link.get<std::string>());
  line("routing", fmt::format("{} ({}, {:.2f} s), LMC {}, LIDs to {}, {} lane{}", json.at("engine").get<std::string>(),
                              json.at("by").get<std::string>(), json.at("seconds").get<double>(),
                              json.at("lmc").get<uint64_t>(), json.at("last_lid").get<uint64_t>(),
                              json.at("lanes").get<uint64_t>(), json.at("lanes") == 1 ? "" : "s"));
  if (json.contains("note")) line("", json.at("note").get<std::string>());
  const Json& reach = json.at("reachability");
  line("reachability", fmt::format("{} of {} paths arrive, over at most {} links, {:.2f} on average",
                                   reach.at("reachable").get<uint64_t>(), reach.at("paths").get<uint64_t>(),
                                   reach.at("most_hops").get<uint64_t>(), reach.at("mean_hops").get<double>()));
  if (reach.contains("first")) line("", "the first that does not: " + reach.at("first").get<std::string>());
  const Json& loops = json.at("credit_loops");
  const bool looping = loops.contains("loop");
  line("credit loops",
       looping ? fmt::format("{} of {} channels are on loops: deadlock is possible",
                             loops.at("channels_in_loops").get<uint64_t>(), loops.at("channels").get<uint64_t>())
               : fmt::format("none among {} channels", loops.at("channels").get<uint64_t>()));
  if (looping) line("", loops.at("loop").get<std::string>());
  return page + "\n" + loads_table(json.at("loads"));
}

}  // namespace heddle::cli
