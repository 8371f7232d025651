#include "lab/scenario/build_topology.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/words.h"

namespace heddle::lab {
namespace {

struct BuildShape {
  Topology operator()(const LeafSpineSettings& settings) const { return build_leaf_spine(settings); }
  Topology operator()(const FatTreeSettings& settings) const { return build_fat_tree(settings); }
  Topology operator()(const RailSettings& settings) const { return build_rail(settings); }
  Topology operator()(const SingleSwitchSettings& settings) const { return build_single_switch(settings); }
  Topology operator()(const GraphSettings& settings) const { return build_graph(settings); }
  Topology operator()(const TopologyFile& file) const {
    return import_topology(file.file, file.format,
                           {.overhead = file.overhead, .delay = file.link.delay, .rate = file.link.rate});
  }
};

// A link's name in an event: the links it means, and the node that directions are seen from.
struct NamedLinks {
  std::vector<LinkId> links;
  NodeId first = 0;
};

NamedLinks find_links(const Topology& topology, const std::string& text);
std::optional<PortRef> find_named_port(const Topology& topology, std::string_view text);

}  // namespace

Topology build_topology(const TopologySpec& spec) {
  const TopologyFile* file = std::get_if<TopologyFile>(&spec.shape);
  return at_place(spec.place, file == nullptr ? "" : file->file, [&] { return std::visit(BuildShape(), spec.shape); });
}

std::vector<LinkEvent> build_events(const Topology& topology, const std::vector<EventSpec>& specs) {
  std::vector<LinkEvent> events;
  for (const EventSpec& spec : specs) {
    at_place(spec.place, "", [&] {
      const NamedLinks named = find_links(topology, spec.link);
      for (const LinkId link : named.links) {
        LinkEvent event = {spec.at, link, spec.kind, spec.direction, spec.rate, spec.loss};
        if (topology.links[link].a != named.first && spec.direction != LinkDirection::kBoth) {
          event.direction = spec.direction == LinkDirection::kAToB ? LinkDirection::kBToA : LinkDirection::kAToB;
        }
        validate(topology, event);
        events.push_back(event);
      }
    });
  }
  std::stable_sort(events.begin(), events.end(), [](const LinkEvent& x, const LinkEvent& y) { return x.at < y.at; });
  return events;
}

namespace {

// "leaf0-spine1", "leaf0:3", or both ports as link_name writes them. Names may hold a '-' themselves.
NamedLinks find_links(const Topology& topology, const std::string& text) {
  if (const auto port = find_named_port(topology, text)) {
    return {{topology.ports[port->node][port->port]}, port->node};
  }
  for (size_t dash = text.find('-'); dash != std::string::npos; dash = text.find('-', dash + 1)) {
    const std::string_view a = std::string_view(text).substr(0, dash);
    const std::string_view b = std::string_view(text).substr(dash + 1);
    const auto node = find_node(topology, a);
    const auto other = find_node(topology, b);
    if (node && other) {
      const std::vector<LinkId> links = topology.links_between(*node, *other);
      if (!links.empty()) return {links, *node};
      throw_bad_input("found link {}, but no link between {} and {}; accepted: the names of two neighbours",
                      config::quote(text), a, b);
    }
    const auto port = find_named_port(topology, a);
    const auto far_port = find_named_port(topology, b);
    if (port && far_port) {
      const LinkId link = topology.ports[port->node][port->port];
      if (link == topology.ports[far_port->node][far_port->port]) return {{link}, port->node};
    }
  }
  throw_bad_input(
      "found link {}; accepted: two neighbours such as leaf0-spine1 or a port such as leaf0:3, with the names {}",
      config::quote(text), node_names(topology));
}

std::optional<PortRef> find_named_port(const Topology& topology, std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto node = find_node(topology, text.substr(0, colon));
  if (!node) return std::nullopt;
  return find_port(topology, text);
}

}  // namespace
}  // namespace heddle::lab
