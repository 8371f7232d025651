// Loads any bytes as a switch configuration; what follows a first NUL is an overlay.
//
//   config-fuzz -max_total_time=60 -max_len=4096 CORPUS examples/run
//
// Whatever comes in, the outcome is a configuration or one line of error. A document that was read must print as YAML
// that reads as the same document; a configuration that was accepted, as JSON that loads to the same configuration.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/yaml.h"
#include "control/switch_config.h"
#include "net/error.h"

namespace {

void require(bool holds, const char* what, const std::string& detail) {
  if (holds) return;
  std::fprintf(stderr, "%s\n%s\n", what, detail.c_str());
  std::abort();
}

void check_error(const heddle::Error& error) {
  const std::string message = error.what();
  require(error.kind() == heddle::Error::Kind::kBadInput, "not bad input", message);
  require(message.find('\n') == std::string::npos && message.find('\r') == std::string::npos, "not one line", message);
  require(message.size() < 2000, "an endless line", message);
  const bool placed = message.starts_with("fuzz.yaml:") || message.starts_with("--set ");
  require(placed && message.find(": found ") != std::string::npos && message.find("; accepted: ") != std::string::npos,
          "not 'PLACE: found …; accepted: …'", message);
}

void check_document(std::string_view text, const std::vector<std::string>& overlays) {
  const heddle::config::Document document = heddle::config::load_text(text, "fuzz.yaml", overlays);
  const std::string json = document.to_json().dump();
  if (json == "null") return;  // an overlay cannot make it so, an empty file is refused
  const std::string yaml = document.to_yaml();
  try {
    const std::string again = heddle::config::load_text(yaml, "again.yaml").to_json().dump();
    require(json == again, "the printed document means something else", yaml + "\n" + json + "\n" + again);
  } catch (const heddle::Error& error) {
    require(false, "the printed document is not readable", yaml + "\n" + error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t nul = input.find('\0');
  std::vector<std::string> overlays;
  if (nul != std::string_view::npos) overlays.emplace_back(input.substr(nul + 1));
  std::string json;
  try {
    check_document(input.substr(0, nul), overlays);
    json = to_json(heddle::control::load_switch_config_text(input.substr(0, nul), "fuzz.yaml", overlays)).dump();
  } catch (const heddle::Error& error) {
    check_error(error);
    return 0;
  }
  const std::string again = to_json(heddle::control::load_switch_config_text(json, "again.yaml")).dump();
  require(json == again, "the printed configuration means something else", json + "\n" + again);
  return 0;
}
