// Which of a NIC's queues belong to which traffic class, where each class has its own.
#pragma once

#include <array>
#include <cstdint>

#include "net/packet.h"

namespace heddle::dataplane {

struct ClassQueues {
  std::array<uint16_t, kTrafficClasses> rx{};  // by class
  std::array<uint16_t, kTrafficClasses> tx{};
  // To be set up in all: a NIC may leave queues between those of two classes, which nothing reaches.
  uint16_t rx_count = 0;
  uint16_t tx_count = 0;
  uint8_t lossless = 0;  // bit = class for which the NIC sends and obeys pauses
};

}  // namespace heddle::dataplane
