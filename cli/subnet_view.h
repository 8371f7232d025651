// What `heddle subnet` found, as JSON and as a page.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/subnet/manager.h"
#include "lab/topology/topology.h"

namespace heddle::cli {

// `without`: the names of the links that were left out. `note`: why the engine is not the one a user would expect; "".
nlohmann::ordered_json subnet_json(const lab::Topology& topology, const std::vector<bool>& link_up,
                                   const lab::ManagedSubnet& subnet, const std::vector<std::string>& without,
                                   const std::string& note);

// The page of subnet_json.
std::string subnet_page(const nlohmann::ordered_json& json);

}  // namespace heddle::cli
