// Groups of ports for adaptive routing, and for the time in which a port is dead, around the one that a forwarding
// table names.
#pragma once

#include <vector>

#include "lab/subnet/loops.h"
#include "lab/subnet/tables.h"
#include "lab/topology/routing.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

// What every switch may forward by, indexed by LID in the place of hosts: for each LID of a host the port that its
// table names, and every other whose far end is as near to the host, counted in hops along the tables (for shortest
// paths: all ports that begin one). So each hop leads nearer, whichever ports are taken together: no packet can come
// back to where it was. A LID whose way by the tables ends somewhere else or crosses a link that is down has its
// table's port alone. Not split by the port that the table names: split_by_table does.
std::vector<SwitchRoutes> equal_length_groups(const Topology& topology, const SubnetTables& tables,
                                              const std::vector<bool>& link_up);
// The same from shortest paths by host, for tables of shortest paths.
std::vector<SwitchRoutes> groups_by_lid(const SubnetTables& tables, std::vector<SwitchRoutes>&& by_host);
// One port for each LID, as the tables say.
std::vector<SwitchRoutes> table_groups(const SubnetTables& tables);

// Has every group say which of its members the table names; LIDs for which the table names different ones are in
// groups of their own.
void split_by_table(const SubnetTables& tables, std::vector<SwitchRoutes>& routes);

// Loops of credits that close over the groups and not over the tables alone; where those close some, nothing.
// `levels`: bit = service level whose packets may take any member.
CreditLoops added_loops(const Topology& topology, const SubnetTables& tables, const std::vector<SwitchRoutes>& groups,
                        uint16_t levels);

}  // namespace heddle::lab
