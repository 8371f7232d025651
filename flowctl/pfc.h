// Priority-based flow control: the frame (IEEE 802.1Q 36, once 802.1Qbb; layout in 802.3 annex 31D), and what it does
// to the transmitter that receives it. Knows frames and time, no ports.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "net/headers.h"
#include "net/packet.h"
#include "net/rate.h"
#include "net/time.h"

namespace heddle::flowctl {

// What a PFC frame asks of its receiver.
struct PfcRequest {
  uint8_t classes = 0;                             // bit = priority whose quanta below count (class-enable vector)
  std::array<uint16_t, kTrafficClasses> quanta{};  // pause from now on, in units of 512 bit times; 0 = resume

  static PfcRequest pause(uint8_t classes, uint16_t quanta);
  static PfcRequest resume(uint8_t classes) { return pause(classes, 0); }
};

enum class MacControl : uint8_t {
  kPfc,          // opcode 0x0101
  kGlobalPause,  // opcode 0x0001, 802.3 annex 31B: never together with PFC on a link, so nothing obeys it
  kTagged,       // behind a VLAN tag, where no MAC looks for it (802.3 31.4.1)
  kShort,        // ends inside what it says it is
  kOther,        // another opcode
  kNone,         // not a MAC control frame
};

inline constexpr net::Mac kMacControlAddress{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};
inline constexpr uint16_t kOpcodePfc = 0x0101;
inline constexpr uint16_t kOpcodePause = 0x0001;
inline constexpr uint16_t kMaxQuanta = 0xffff;
inline constexpr uint32_t kPfcFrameBytes = 60;  // without FCS: the smallest Ethernet frame (802.3 4A.4.2)

// What a frame is; fills `request` for kPfc only. Looks at no address: the link has two ends, and whatever MAC control
// frame comes out of it is for us (some senders' source address is all zeros).
MacControl parse_mac_control(const uint8_t* frame, size_t length, PfcRequest& request);

// Writes the kPfcFrameBytes of a PFC frame. Quanta of classes that are not named are sent as 0.
void write_pfc(uint8_t* frame, const net::Mac& source, const PfcRequest& request);

// How long `quanta` last on a link of that rate, which is not unlimited.
constexpr Duration pause_time(uint16_t quanta, Rate link) { return link.long_time_for(uint64_t{quanta} * (512 / 8)); }

// Which classes a transmitter must hold back, and until when.
class PauseState {
 public:
  // A frame arrived: each class it names is paused for its quanta from `now` on (a shorter time replaces a longer one)
  // or resumed. Returns the classes that are paused.
  uint8_t receive(const PfcRequest& request, Rate link, Time now);

  // Ends the pauses whose time is over by `now`. Returns the classes that are still paused.
  uint8_t expire(Time now) { return paused_ == 0 || before(now, next_expiry_) ? paused_ : expire_some(now); }

  // Bit = class.
  uint8_t paused() const { return paused_; }
  bool is_paused(unsigned traffic_class) const { return ((paused_ >> traffic_class) & 1U) != 0; }
  // When the next pause ends unless it is refreshed; only meaningful while a class is paused.
  Time next_expiry() const { return next_expiry_; }

  // How long a class has been paused in all, up to `now`, which no pause that has ended lies beyond.
  Duration paused_time(unsigned traffic_class, Time now) const;

  // Ends all pauses, as a link that goes down does.
  void clear(Time now);

 private:
  uint8_t expire_some(Time now);
  void end(unsigned traffic_class, Time at);
  void find_next_expiry();

  uint8_t paused_ = 0;
  Time next_expiry_ = 0;
  std::array<Time, kTrafficClasses> until_{};
  std::array<Time, kTrafficClasses> since_{};
  std::array<Duration, kTrafficClasses> ended_{};  // pauses that are over, summed
};

}  // namespace heddle::flowctl
