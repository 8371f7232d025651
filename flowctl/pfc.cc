#include "flowctl/pfc.h"

#include <algorithm>
#include <cstring>

namespace heddle::flowctl {

using net::PfcFrame;
static_assert(offsetof(PfcFrame, opcode) == 14);
static_assert(offsetof(PfcFrame, class_enable) == 16);
static_assert(offsetof(PfcFrame, quanta) == 18);
static_assert(sizeof(PfcFrame) <= kPfcFrameBytes);

PfcRequest PfcRequest::pause(uint8_t classes, uint16_t quanta) {
  PfcRequest request{.classes = classes};
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    if (((classes >> tc) & 1U) != 0) request.quanta[tc] = quanta;
  }
  return request;
}

MacControl parse_mac_control(const uint8_t* frame, size_t length, PfcRequest& request) {
  size_t at = offsetof(net::EthernetHeader, ether_type);
  bool tagged = false;
  const auto word = [&](size_t offset) { return static_cast<uint16_t>(*net::header_at<net::Be16>(frame, offset)); };
  while (length >= at + 2 && (word(at) == net::kTypeVlan || word(at) == net::kTypeServiceVlan)) {
    at += sizeof(net::VlanTag);
    tagged = true;
  }
  if (length < at + 2 || word(at) != net::kTypeMacControl) return MacControl::kNone;
  if (tagged) return MacControl::kTagged;
  if (length < offsetof(PfcFrame, class_enable)) return MacControl::kShort;
  const auto* pfc = net::header_at<PfcFrame>(frame, 0);
  if (pfc->opcode == kOpcodePause) return MacControl::kGlobalPause;
  if (pfc->opcode != kOpcodePfc) return MacControl::kOther;
  // Padding may be gone: not every virtual wire keeps it.
  if (length < sizeof(PfcFrame)) return MacControl::kShort;
  request.classes = static_cast<uint8_t>(pfc->class_enable);  // the upper byte is reserved, ignored on receipt (31D.2)
  std::copy(pfc->quanta.begin(), pfc->quanta.end(), request.quanta.begin());
  return MacControl::kPfc;
}

void write_pfc(uint8_t* frame, const net::Mac& source, const PfcRequest& request) {
  std::memset(frame, 0, kPfcFrameBytes);
  auto* pfc = net::header_at<PfcFrame>(frame, 0);
  pfc->ethernet = {.destination = kMacControlAddress, .source = source, .ether_type = net::kTypeMacControl};
  pfc->opcode = kOpcodePfc;
  pfc->class_enable = request.classes;
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    if (((request.classes >> tc) & 1U) != 0) pfc->quanta[tc] = request.quanta[tc];
  }
}

uint8_t PauseState::receive(const PfcRequest& request, Rate link, Time now) {
  expire(now);
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    if (((request.classes >> tc) & 1U) == 0) continue;
    const uint16_t quanta = request.quanta[tc];
    if (quanta == 0) {
      if (is_paused(tc)) end(tc, now);
      continue;
    }
    if (!is_paused(tc)) since_[tc] = now;
    paused_ |= static_cast<uint8_t>(1U << tc);
    until_[tc] = now + pause_time(quanta, link);
  }
  find_next_expiry();
  return paused_;
}

uint8_t PauseState::expire_some(Time now) {
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    if (is_paused(tc) && !before(now, until_[tc])) end(tc, until_[tc]);
  }
  find_next_expiry();
  return paused_;
}

Duration PauseState::paused_time(unsigned traffic_class, Time now) const {
  return ended_[traffic_class] + (is_paused(traffic_class) ? elapsed(now, since_[traffic_class]) : 0);
}

void PauseState::clear(Time now) {
  expire(now);
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    if (is_paused(tc)) end(tc, now);
  }
}

void PauseState::end(unsigned traffic_class, Time at) {
  paused_ &= static_cast<uint8_t>(~(1U << traffic_class));
  ended_[traffic_class] += elapsed(at, since_[traffic_class]);
}

void PauseState::find_next_expiry() {
  bool first = true;
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    if (!is_paused(tc)) continue;
    if (first || before(until_[tc], next_expiry_)) next_expiry_ = until_[tc];
    first = false;
  }
}

}  // namespace heddle::flowctl
