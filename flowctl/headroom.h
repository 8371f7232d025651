// How much a lossless class still receives after its switch has decided to pause the sender, and the settings that
// follow from it: the arithmetic of `heddle tune`, and of what a switch checks when it starts. Its `pfc_reaction` is
// all that is a time, both ends and the cable; the frames it knows itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/rate.h"
#include "net/time.h"

namespace heddle::flowctl {

// Light in fibre and signals in copper: 1.98 × 10^8 m/s, 5.05 ns per metre (sonic-swss, buffer_headroom_mellanox.lua).
constexpr Duration cable_delay(double metres) { return static_cast<Duration>(metres / 1.98e8 * 1e12); }

// Pause quanta (512 bit times) that a port of that rate may take to stop after a PFC frame has arrived, MAC and PHY
// included (802.1Qbb annex O; per rate as in sonic-swss, buffer_headroom_mellanox.lua). Of the next higher rate where
// there is none for this one.
uint32_t peer_response_quanta(Rate rate);

// One direction of a link into a port with lossless classes.
struct HeadroomInput {
  Rate rate;
  double cable_metres = 0;
  uint32_t frame_bytes = 0;          // the longest frame, without FCS, that either end sends
  int overhead = kEthernetOverhead;  // wire bytes of a frame beyond its own
  // The peer's, from our PFC frame at its port until it stops; nothing: peer_response_quanta. A software switch takes a
  // poll interval.
  std::optional<Duration> peer_reaction = {};
  // Ours, from the packet that crosses XOFF until our PFC frame is at the head of the port: the poll interval.
  Duration reaction = 0;
  uint32_t burst = 0;    // frames of the burst in hand, taken in before the threshold is looked at again
  uint32_t tx_ring = 0;  // frames already with the device, which no PFC frame overtakes
};

// One line of the sum.
struct HeadroomStep {
  std::string what;
  std::string how;  // "2 × 30 m ÷ 1.98e8 m/s × 100G"
  uint64_t bytes = 0;
};

struct Headroom {
  std::vector<HeadroomStep> steps;
  uint64_t bytes = 0;     // their sum, rounded up to a KiB
  Duration reaction = 0;  // the part of it that is a time: both ends, the cable, and what is with the device
};

// Headroom of one priority group. The rate is limited.
Headroom required_headroom(const HeadroomInput& input);

// A switch all of whose ports are alike.
struct TuningInput {
  HeadroomInput port;
  uint32_t ports = 0;
  uint32_t lossless_classes = 1;  // per port
  uint32_t workers = 1;           // lcores that charge one buffer at the same time
  uint64_t buffer_bytes = 0;
};

struct Tuning {
  Headroom headroom;        // per priority group
  uint64_t reserved = 0;    // per priority group: two of the longest frames
  uint64_t kept_aside = 0;  // workers may overshoot the buffer by a burst each
  uint64_t shared = 0;      // what is left for all
  double alpha = 0;         // XOFF of a group = alpha × what is free of the shared pool
  uint64_t xoff_alone = 0;  // while one group is congested
  uint64_t xoff_all = 0;    // while all are
  uint64_t xon_offset = 0;  // resume this far below XOFF
  uint64_t kmin = 0;        // ECN
  uint64_t kmax = 0;
  double pmax = 0;
  std::vector<HeadroomStep> arithmetic;  // from the buffer's size on
};

// Throws bad input, naming the sizes, if the buffer cannot hold the headroom of all lossless groups and a shared pool.
Tuning tune(const TuningInput& input);

}  // namespace heddle::flowctl
