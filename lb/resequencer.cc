#include "lb/resequencer.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "net/random.h"

namespace heddle::lb {

namespace {
// Flows that may have gaps at a time. Their windows are touched only as far as they are used.
constexpr uint32_t kWindows = 1024;
}  // namespace

Resequencer::Resequencer(const ResequencerSettings& settings) : settings_(settings) {
  const uint64_t sets = std::bit_ceil(std::max<uint64_t>(2, 2 * uint64_t{settings.max_flows} / kWays));
  flows_.resize(sets * kWays);
  shift_ = 64U - static_cast<unsigned>(std::countr_zero(sets));
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): pages that nobody touches take no memory
  memory_.reset(static_cast<Window*>(std::calloc(kWindows, sizeof(Window))));
  if (memory_ == nullptr) throw std::bad_alloc();
  active_.resize(kWindows);
  for (uint32_t i = kWindows; i-- > 0;) free_windows_.push_back(i);
}

// 64 bits of the destination address and queue pair: two flows of 10,000 share them once in 10^11 switches.
uint64_t Resequencer::key_of(const Packet* packet, const uint8_t* frame) {
  const PacketMeta& meta = meta_of(packet);
  const auto* bth = net::header_at<net::Bth>(frame, meta.l4_offset + sizeof(net::UdpHeader));
  const uint8_t* ip = frame + meta.l3_offset;
  // READ responses (0x0d–0x10) are numbered by the requests that their receiver sent, not with those it receives.
  const unsigned operation = bth->opcode & 0x1fU;
  const uint64_t response = operation >= 0x0d && operation <= 0x10 ? uint64_t{1} << 32U : 0;
  uint64_t key = mix64(bth->dest_qp | response);
  if (meta.l3 == L3::kIpv4) {
    key = mix64(key ^ net::load<uint32_t>(ip + 16));
  } else {
    key = mix64(key ^ net::load<uint64_t>(ip + 24));
    key = mix64(key ^ net::load<uint64_t>(ip + 32));
  }
  return key | 1U;  // 0 is nobody's
}

// The flow's entry, a fresh one in the place of the flow that has been silent longest. Null if the set is full of flows
// that hold packets.
Resequencer::Flow* Resequencer::find(uint64_t key, Time now) {
  Flow* const set = &flows_[(key >> shift_) * kWays];
  Flow* oldest = nullptr;
  for (unsigned way = 0; way < kWays; ++way) {
    Flow& flow = set[way];
    if (flow.key == key) {
      flow.seen = now;
      return &flow;
    }
    if (flow.held != 0) continue;
    if (oldest == nullptr || (oldest->key != 0 && (flow.key == 0 || before(flow.seen, oldest->seen)))) oldest = &flow;
  }
  if (oldest == nullptr) return nullptr;
  *oldest = Flow{};
  oldest->key = key;
  oldest->seen = now;
  return oldest;
}

// Whether there is room, and a window for the flow.
bool Resequencer::may_hold(Flow& flow, uint32_t ahead, uint64_t bytes) {
  if (ahead >= kWindow || flow.bytes + bytes > settings_.max_flow_bytes || held_bytes_ + bytes > settings_.max_bytes ||
      held_packets_ >= settings_.max_packets) {
    return false;
  }
  if (flow.window != kNone) return true;
  if (free_windows_.empty()) return false;
  flow.window = free_windows_.back();
  free_windows_.pop_back();
  active_[flow.window] = &flow;
  return true;
}

void Resequencer::hold(Flow& flow, Packet* packet, uint32_t psn, uint32_t ahead, Time now) {
  memory_.get()[flow.window].slots[psn % kWindow] = packet;
  meta_of(packet).arrival = now;
  flow.ahead = std::max(flow.ahead, ahead);
  flow.held++;
  flow.bytes += packet->pkt_len;
  const Time due = now + settings_.hold_time;
  if (held_packets_ == 0 || before(due, next_expiry_)) next_expiry_ = due;
  held_packets_++;
  held_bytes_ += packet->pkt_len;
  counters_.held.add(1);
}

// The held packet of that number, if there is one: it is held no more.
Packet* Resequencer::take(Flow& flow, uint32_t psn) {
  Packet*& slot = memory_.get()[flow.window].slots[psn % kWindow];
  Packet* packet = slot;
  if (packet == nullptr) return nullptr;
  slot = nullptr;
  flow.held--;
  flow.bytes -= packet->pkt_len;
  held_packets_--;
  held_bytes_ -= packet->pkt_len;
  return packet;
}

void Resequencer::let_go(Flow& flow) {
  flow.ahead = 0;
  if (flow.window == kNone) return;
  active_[flow.window] = nullptr;
  free_windows_.push_back(flow.window);
  flow.window = kNone;
}

}  // namespace heddle::lb
