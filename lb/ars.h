// Adaptive routing and switching: the settings of flowlets and of path quality, under the names that SAI gives them
// (saiars.h, saiarsprofile.h, doc/ARS of SAI 1.12), one set for a switch.
//
// A load is a time: how long the port would take to send what waits for it. SAI states loads in bytes or Mb/s and
// scales them by port speed (PORT_LOAD_SCALING_FACTOR); a time needs no scaling.
#pragma once

#include <array>
#include <cstdint>

#include "net/time.h"

namespace heddle::lb {

// How the best of a group's members is found. None is the exact least load but the one that says so: there every sender
// at line rate locks onto the one uplink that it has just found idle.
enum class QualityRule : uint8_t {
  kDefault,      // power-of-two per packet; bands per flowlet, whose decisions are rare
  kPowerOfTwo,   // the less loaded of two random members (Mitzenmacher 2001)
  kBands,        // a random one of those in the lowest band
  kLeastLoaded,  // the least load to the picosecond; for comparison
};

struct ArsSettings {
  static constexpr unsigned kBands = 8;  // SAI_ARS_PROFILE_ATTR_QUANT_BAND_0 … 7

  Duration idle_time = 256 * kMicrosecond;  // a pause this long ends a flowlet
  uint32_t max_flows = 16'384;              // that one worker's (or lab switch's) flowlet table is made for
  QualityRule quality_rule = QualityRule::kDefault;

  // Load = (future × weight + past × weight) / 16. Future: the queue's drain time. Past: how long the port was busy in
  // one sampling interval, averaged over 2^port_load_exponent of them where `ewma` is set.
  Duration sampling_interval = 16 * kMicrosecond;
  bool ewma = true;
  uint16_t port_load_exponent = 2;     // 0–8
  uint16_t port_load_past_weight = 0;  // 0–255
  uint16_t port_load_future_weight = 16;

  // Upper ends of bands 0–6, ascending; band 7 is what lies above. 4 µs are 50 kB at 100 Gb/s, 12 full packets.
  std::array<Duration, kBands - 1> quant_bands{4 * kMicrosecond,  8 * kMicrosecond,  16 * kMicrosecond,
                                               32 * kMicrosecond, 64 * kMicrosecond, 128 * kMicrosecond,
                                               256 * kMicrosecond};

  // Members marked `alternate` (longer paths) are taken only where the best primary's band has reached
  // `primary_path_quality_threshold`, and the best alternate's band + `alternate_path_cost` is below it. Lower bands
  // are better. 8: never.
  unsigned primary_path_quality_threshold = 1;
  unsigned alternate_path_cost = 1;
};

}  // namespace heddle::lb
