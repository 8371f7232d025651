// What holds a host's messages back: pauses, and lanes without credit. A message waits from when its queue pair has a
// packet for the port until that leaves.
#include "lab/host/host.h"

namespace heddle::lab {

void Host::note_pauses(uint8_t paused, Time now) { pause_log_->note(0, paused, heard_.front(), now); }

void Host::hear_origin(const Packet* credit_packet, unsigned vl) {
  heard_[vl] = PauseOrigin(meta_of(credit_packet).owner);
  pause_log_->correct_origin(0, vl, heard_[vl]);
}

void Host::note_turn(uint32_t index, MessageId message, Time now) {
  pause_log_->note_wait(0, class_to(send_queues_[index].peer), message, waiting_since_[index], now);
}

void Host::close_pauses(Time now) {
  if (pause_log_ == nullptr) return;
  pause_log_->note(0, 0, PauseOrigin(), now);
  const auto note_waiting = [&](GrowingRing<uint32_t>& turns) {
    turns.for_each([&](uint32_t index) {
      if (send_queues_[index].has_packet(window_packets_)) note_turn(index, send_queues_[index].next_message(), now);
    });
  };
  note_waiting(turns_);
  if (lanes_ == nullptr) return;
  for (GrowingRing<uint32_t>& turns : lanes_->turns) note_waiting(turns);
}

}  // namespace heddle::lab
