// Bodies of requests to the control socket: any bytes are read or refused as bad input, and the refusal can be
// answered.
#include <cstddef>
#include <cstdint>
#include <string>

#include "control/requests.h"
#include "net/error.h"

namespace {

template <typename Read>
void read_or_refuse(const Read& read) {
  try {
    read();
  } catch (const heddle::Error& error) {
    if (error.kind() != heddle::Error::Kind::kBadInput) throw;
    heddle::control::error_text(error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heddle::control;
  static const SwitchConfig config = load_switch_config_text(
      "ports:\n  - {name: a, device: net_null0}\n  - {name: b, device: net_null1, vlans: [{id: 7}]}\n", "fuzz");
  const std::string body(reinterpret_cast<const char*>(data), size);
  read_or_refuse([&] {
    const Json json = parse_body(body);
    answer_text(json);
    read_or_refuse([&] { prefix_field(json); });
    read_or_refuse([&] { read_next_hop(json, config); });
    read_or_refuse([&] { read_schedulers(json); });
  });
  return 0;
}
