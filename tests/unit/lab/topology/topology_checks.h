// What several of the topology tests check.
#pragma once

#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "lab/topology/topology.h"
#include "net/error.h"

namespace heddle::lab {

// Runs `act`, which must throw bad input whose text holds `part`.
template <typename Act>
void expect_bad_input(Act&& act, const std::string& part) {
  try {
    std::forward<Act>(act)();
    ADD_FAILURE() << "accepted; expected an error with: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kBadInput) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what() << "\nlacks: " << part;
  }
}

// Every port of every node belongs to exactly one end of one link, numbered in the order of the links.
inline void expect_ports_fit_links(const Topology& t) {
  std::vector<PortIndex> next(t.nodes.size());
  for (LinkId id = 0; id < t.links.size(); ++id) {
    const Link& link = t.links[id];
    ASSERT_EQ(link.a_port, next[link.a]++);
    ASSERT_EQ(link.b_port, next[link.b]++);
    ASSERT_EQ(t.ports[link.a].at(link.a_port), id);
    ASSERT_EQ(t.ports[link.b].at(link.b_port), id);
  }
  for (NodeId node = 0; node < t.nodes.size(); ++node) {
    ASSERT_EQ(t.ports[node].size(), next[node]) << t.nodes[node].name;
  }
}

inline void expect_hosts_first(const Topology& t) {
  std::set<std::string> names;
  for (NodeId node = 0; node < t.nodes.size(); ++node) {
    ASSERT_EQ(t.nodes[node].kind == NodeKind::kHost, node < t.host_count);
    ASSERT_EQ(t.nodes[node].tier == 0, node < t.host_count);
    ASSERT_TRUE(names.insert(t.nodes[node].name).second) << t.nodes[node].name;
  }
}

inline NodeId node(const Topology& t, const std::string& name) { return find_node(t, name).value(); }

// Who is at the other end of a port.
inline std::string peer(const Topology& t, const std::string& name, PortIndex port) {
  return t.nodes[t.neighbor(node(t, name), port)].name;
}

}  // namespace heddle::lab
