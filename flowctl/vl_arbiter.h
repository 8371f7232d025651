// Which virtual lane of a port sends next (IBTA volume 1, 7.6.9): two tables of lanes with weights. The high one goes
// first, but after it has sent as much as its limit allows while the low one waits, that one sends a packet. Within a
// table lanes take turns; a turn lasts until the entry's weight is used up or its lane has nothing that may be sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::flowctl {

// Weight in units of 64 bytes; an entry without is skipped. A packet that has begun is sent whole, so that a lane may
// take up to a packet more than its weight.
struct VlEntry {
  uint8_t vl = 0;
  uint8_t weight = 0;
};

struct VlArbiterSettings {
  std::vector<VlEntry> high;
  std::vector<VlEntry> low;
  uint8_t high_limit = 0;  // in 4096 bytes; 255 = no limit, 0 = one packet

  // Without weight anywhere there is nothing to go by.
  bool is_on() const;
};

class VlArbiter {
 public:
  static constexpr unsigned kNone = ~0U;

  explicit VlArbiter(const VlArbiterSettings& settings = {});

  // The lane whose packet goes next, of those that could send one (bit = lane); kNone if no table names any of them.
  unsigned pick(uint16_t open);
  // What it sent, before the next pick.
  void sent(uint32_t bytes);

 private:
  struct Table {
    std::vector<VlEntry> entries;
    size_t at = 0;     // the entry whose turn it is
    int32_t left = 0;  // of its weight, in bytes
    unsigned pick(uint16_t open);
    bool names(uint16_t open) const;
  };

  Table high_;
  Table low_;
  int64_t limit_;          // of bytes that the high table may send while the low one waits; -1 = none
  int64_t high_sent_ = 0;  // of those
  bool low_waits_ = false;
  bool from_high_ = false;
};

}  // namespace heddle::flowctl
