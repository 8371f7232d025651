// Topology files of other simulators: any bytes give a valid topology or bad input. The first byte chooses the format.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lab/topology/import.h"
#include "net/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using heddle::lab::TopologyFormat;
  if (size == 0) {
    return 0;
  }
  constexpr TopologyFormat kFormats[] = {TopologyFormat::kHtsim, TopologyFormat::kHpcc, TopologyFormat::kSimai,
                                         TopologyFormat::kIbnetdiscover};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    heddle::lab::validate(heddle::lab::parse_topology(text, "fuzz", kFormats[data[0] % 4]));
  } catch (const heddle::Error& error) {
    if (error.kind() != heddle::Error::Kind::kBadInput) {
      throw;
    }
  }
  return 0;
}
