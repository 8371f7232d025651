// What `heddle tune` answers: the settings of a lossless switch, how they come about, and the configuration to paste.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "flowctl/headroom.h"

namespace heddle::cli {

// As written on the command line; texts are empty where nothing was.
struct TuneOptions {
  std::string port = "100G";
  std::string cable = "30m";
  uint32_t mtu = 4200;  // IP bytes
  uint32_t ports = 32;
  std::string buffer = "32MB";
  std::vector<unsigned> lossless{3};  // classes
  std::string poll = "20us";          // our poll interval
  std::string peer;                   // the peer's reaction; empty: 802.1Qbb
  uint32_t burst = 32;
  uint32_t tx_ring = 0;
  uint32_t workers = 1;
};

struct TuneAnswer {
  TuneOptions options;
  flowctl::TuningInput input;
  flowctl::Tuning tuning;
};

// Throws bad input that names the option.
TuneAnswer answer(const TuneOptions& options);

std::string yaml_of(const TuneAnswer& answer);  // part of a switch configuration
std::string page_of(const TuneAnswer& answer);  // the arithmetic, and the YAML
nlohmann::ordered_json json_of(const TuneAnswer& answer);

}  // namespace heddle::cli
