// The pipeline's lane without credits: subnet management packets (VL15), sent before all else and dropped where there
// is no room for them, and the notices among them by which a fabric heals itself (reach.h).
//
// A switch makes and takes them itself; none is forwarded. That happens when links fail, so that what it costs does not
// matter.
#include "dataplane/pipeline.h"

namespace heddle::dataplane {

void Pipeline::review_reach() {
  if (lanes_ == nullptr || !lanes_->reach().notifies() || source_ == nullptr) return;
  lanes_->reach().review(*tables_, states_);
  tell_neighbours();
  flush_drops();
}

void Pipeline::repeat_notices() {
  lanes_->reach().repeat(*tables_);
  tell_neighbours();
  flush_drops();
}

void Pipeline::receive_management(Packet* packet) {
  const PortId in = meta_of(packet).in_port;
  ++lanes_->port(in).management_received;
  Reach& reach = lanes_->reach();
  net::ReachNotice notice;
  if (reach.notifies() && net::parse_reach_notice(frame_of(packet), packet->data_len, notice) &&
      reach.hear(in, notice)) {
    reach.review(*tables_, states_, notice);
    tell_neighbours();
  }
  consume(packet);
}

// All of them: who has no use for it does not use it. Whoever is behind a dead port hears it when the link is back.
void Pipeline::tell_neighbours() {
  std::vector<net::ReachNotice>& changes = lanes_->reach().changes();
  for (const net::ReachNotice& notice : changes) {
    for (PortId port = 0; port < lanes_->size(); ++port) {
      if (lanes_->reach().is_peer(port) && states_.is_up(port)) tell(port, notice);
    }
  }
  changes.clear();
}

void Pipeline::tell(PortId out, const net::ReachNotice& notice) {
  Packet* packet = source_->make();
  if (packet == nullptr) return;
  net::write_reach_notice(frame_of(packet), lanes_->reach().lid(), lanes_->reach().next_number(), notice);
  packet->data_len = net::kNoticeHeaders;
  packet->pkt_len = net::kManagementFrame;
  PacketMeta& meta = meta_of(packet);
  static_cast<HeaderFacts&>(meta) = {};
  meta.out_port = out;
  meta.traffic_class = net::kManagementLane;
  Lanes::Port& port = lanes_->port(out);
  ++port.management_sent;
  if (port.management.push(packet)) {
    awaken(out);
  } else {
    drop(out, packet, DropReason::kManagementFull);
  }
}

Packet* Pipeline::send_management(PortId out, Time now) {
  Lanes::Port& port = lanes_->port(out);
  if (port.management.empty() || !egress_[out].may_send_at(now)) return nullptr;
  Packet* packet = port.management.pop().packet();
  egress_[out].take_wire(packet->pkt_len, now);
  return packet;
}

void Pipeline::flush_management(PortId out, DropReason reason) {
  EgressQueue& queue = lanes_->port(out).management;
  while (!queue.empty()) drop(out, queue.pop().packet(), reason);
  flush_drops();
}

uint32_t Pipeline::management_packets() const {
  uint32_t held = 0;
  for (PortId port = 0; lanes_ != nullptr && port < lanes_->size(); ++port) {
    held += lanes_->port(port).management.packets();
  }
  return held;
}

}  // namespace heddle::dataplane
