#include "lab/topology/import.h"

#include <fmt/format.h>

#include "lab/topology/import_text.h"
#include "net/error.h"

namespace heddle::lab {

TopologyFormat topology_format(std::string_view name) {
  if (name == "htsim") {
    return TopologyFormat::kHtsim;
  }
  if (name == "hpcc") {
    return TopologyFormat::kHpcc;
  }
  if (name == "conweave") {
    return TopologyFormat::kConweave;
  }
  if (name == "simai") {
    return TopologyFormat::kSimai;
  }
  if (name == "ibnetdiscover") {
    return TopologyFormat::kIbnetdiscover;
  }
  throw_bad_input("topology format {}; accepted: htsim, hpcc, conweave, simai, ibnetdiscover", quoted(name));
}

namespace {

Topology parse_format(std::string_view text, std::string_view file, TopologyFormat format,
                      const ImportSettings& settings) {
  switch (format) {
    case TopologyFormat::kHtsim:
      return parse_htsim_topology(text, file, settings);
    case TopologyFormat::kIbnetdiscover:
      return parse_ibnetdiscover_topology(text, file, settings);
    default:
      return parse_ns3_topology(text, file, format == TopologyFormat::kSimai, settings);
  }
}

}  // namespace

Topology import_topology(const std::string& path, TopologyFormat format, const ImportSettings& settings) {
  return parse_topology(read_text_file(path), path, format, settings);
}

Topology parse_topology(std::string_view text, std::string_view file, TopologyFormat format,
                        const ImportSettings& settings) {
  try {
    Topology topology = parse_format(text, file, format, settings);
    topology.kind = "file";
    validate(topology);
    return topology;
  } catch (const Error& error) {
    // What is wrong with the fabric as a whole has no line, but must still say in which file.
    const std::string_view what = error.what();
    if (what.substr(0, file.size()) == file) {
      throw;
    }
    throw Error(error.kind(), fmt::format("{}: {}", file, what));
  }
}

}  // namespace heddle::lab
