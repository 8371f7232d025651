// What a subnet manager computed, as text: the dumps of OpenSM and of infiniband-diags, read and written.
//
//   opensm-lfts.dump       `Unicast lids [0-44] of switch Lid 1 guid 0x… ('leaf0'):`, then `0x0001 005 # …` per LID;
//                          what dump_fts (formerly dump_lfts) prints is read too
//   opensm-sl2vl.dump      `Switch 0x…, base LID 1, "leaf0"`, then `in out : 16 lanes` per pair of ports
//   opensm-path-sl.dump    the lines of OpenSM's log in which dfsssp says on which lane a path is:
//                          `… route from src_lid=1 to dest_lid=2 on vl=0`
//   opensm-vlarb.dump      what `smpquery vlarb` prints per port, with ` HighLimit N` at the end of a port's first line
//
// Switches are found by GUID and their ports by the numbers of the subnet (ibnetdiscover.h). A host's LIDs are
// those that its leaf sends out at its port.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/subnet/tables.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

inline constexpr const char* kLftDump = "opensm-lfts.dump";
inline constexpr const char* kSlToVlDump = "opensm-sl2vl.dump";
inline constexpr const char* kPathSlDump = "opensm-path-sl.dump";
inline constexpr const char* kVlArbitrationDump = "opensm-vlarb.dump";
inline constexpr const char* kHostOrderDump = "opensm-ftree-ca-order.dump";

// `file` is the name used in errors. All throw Error (bad input) with file and line for text that is no such dump, or
// names switches that the topology does not have. Entries for ports without a link mean "unreachable".
SubnetTables read_lft_dump(const Topology& topology, std::string_view text, std::string_view file);
// Into tables that have their LIDs.
void read_sl_to_vl_dump(const Topology& topology, std::string_view text, std::string_view file, SubnetTables& tables);
void read_path_sl_dump(std::string_view text, SubnetTables& tables);
void read_vl_arbitration_dump(const Topology& topology, std::string_view text, std::string_view file,
                              SubnetTables& tables);
// The hosts in the order in which the ftree engine gives them to shift permutations free of contention. Places without
// a host, which ftree fills with dummies, are left out.
std::vector<HostId> read_host_order(const SubnetTables& tables, std::string_view text, std::string_view file);

std::string write_host_order(const Topology& topology, const SubnetTables& tables, const std::vector<HostId>& order);
std::string write_lft_dump(const Topology& topology, const SubnetTables& tables);
std::string write_sl_to_vl_dump(const Topology& topology, const SubnetTables& tables);
std::string write_path_sl_dump(const SubnetTables& tables);
std::string write_vl_arbitration_dump(const Topology& topology, const SubnetTables& tables);

// All that a directory holds of it; the tables of LIDs must be there. The engine is "file".
SubnetTables read_subnet_directory(const Topology& topology, const std::string& directory);
// Writes them, with fabric.net (ibnetdiscover) beside them, and the order of hosts if there is one. Throws Error
// (failed) if it cannot.
void write_subnet_directory(const Topology& topology, const std::vector<bool>& link_up, const SubnetTables& tables,
                            const std::vector<HostId>& host_order, const std::string& directory);

}  // namespace heddle::lab
