// Tables of configurations with one mistake each, and the message that each must get.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "control/switch_config.h"
#include "net/error.h"

namespace heddle::control {

struct Mistake {
  std::string what;
  std::string yaml;
  int line;             // that the message must name
  std::string message;  // all that follows "leaf.yaml:LINE: "
};

// Two good ports in lines 1 to 3, then `text` from line 4.
inline std::string after_ports(const std::string& text) {
  return "ports:\n  - {name: a, device: net_null0}\n  - {name: b, device: net_null1}\n" + text + "\n";
}

// One port with these keys beside its name and device, in line 2.
inline std::string port(const std::string& keys) { return "ports:\n  - {name: a, device: net_null0, " + keys + "}\n"; }

inline void expect_messages(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.what);
    try {
      load_switch_config_text(mistake.yaml, "leaf.yaml");
      ADD_FAILURE() << "accepted:\n" << mistake.yaml;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
      EXPECT_EQ(error.what(), "leaf.yaml:" + std::to_string(mistake.line) + ": " + mistake.message);
    }
  }
}

}  // namespace heddle::control
