// The pipeline's part in priority-based flow control: pause frames in, pause frames out, and what time does to both.
#include "dataplane/pipeline.h"

namespace heddle::dataplane {

void Pipeline::configure_control(PortId port, const PortSettings& settings) {
  PortControl& control = controls_[port];
  control.settings = settings.pfc;
  if (settings.pfc.classes != 0) {
    has_pfc_ = true;
    control.sender.configure(settings.pfc.quanta, settings.pfc.link);
  }
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    const ClassSettings& of = settings.egress.classes[tc];
    control.mark[tc] = flowctl::Wred(of.mark);
    control.drop[tc] = flowctl::Wred(of.drop);
    control.mark_above[tc] = of.mark.min_bytes;
    if (of.drop.is_on()) {
      drops_early_[port] |= static_cast<uint8_t>(1U << tc);
      has_wred_drops_ |= static_cast<uint8_t>(1U << tc);
    }
    careful_ = careful_ || of.mark.is_on() || of.drop.is_on();
  }
}

void Pipeline::set_link_rate(PortId port, Rate link) {
  PortControl& control = controls_[port];
  control.settings.link = link;
  control.sender.set_link(link);
}

// --- frames that arrive
// -----------------------------------------------------------------------------------------------

bool Pipeline::is_control(const Packet* packet) {
  return packet->data_len >= sizeof(net::EthernetHeader) &&
         net::header_at<net::EthernetHeader>(frame_of(packet), 0)->ether_type == net::kTypeMacControl;
}

// A frame that `examine` refuses and that may be meant for us all the same: true if it is a PFC frame, which then takes
// effect in its turn. The others are named and dropped.
bool Pipeline::keep_control(PortId in, Packet* packet) {
  if (controls_[in].settings.classes == 0) return false;
  flowctl::PfcRequest request;
  flowctl::MacControl kind = flowctl::parse_mac_control(frame_of(packet), packet->data_len, request);
  const bool tag_taken_out = (packet->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0;
  if (tag_taken_out && kind == flowctl::MacControl::kPfc) kind = flowctl::MacControl::kTagged;
  telemetry::FlowControlCounters& counters = counters_.flow_control[in];
  switch (kind) {
    case flowctl::MacControl::kPfc: {
      PacketMeta& meta = meta_of(packet);
      static_cast<HeaderFacts&>(meta) = {};
      meta.in_port = in;
      return true;
    }
    case flowctl::MacControl::kGlobalPause:
      counters.rx_global_pause.add(1);
      break;
    case flowctl::MacControl::kTagged:
    case flowctl::MacControl::kShort:
    case flowctl::MacControl::kOther:
      counters.rx_malformed.add(1);
      break;
    case flowctl::MacControl::kNone:
      break;
  }
  return false;
}

// The lookup has given control frames a route too, that of 0.0.0.0. Now they have one that no table has.
void Pipeline::hide_from_routing(Packet* const* packets, unsigned count) const {
  for (unsigned i = 0; i < count; ++i) {
    PacketMeta& meta = meta_of(packets[i]);
    if (meta.l3 == L3::kNone) meta.route = kHereRoute;
  }
}

void Pipeline::receive_control(Packet* packet, Time now) {
  const PortId in = meta_of(packet).in_port;
  PortControl& control = controls_[in];
  flowctl::PfcRequest request;
  flowctl::parse_mac_control(frame_of(packet), packet->data_len, request);
  telemetry::FlowControlCounters& counters = counters_.flow_control[in];
  counters.rx_frames.add(1);
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    if (((request.classes >> tc) & 1U) == 0) continue;
    (request.quanta[tc] != 0 ? counters.rx_pause : counters.rx_resume)[tc].add(1);
  }
  request.classes &= control.settings.classes;  // PFC is enabled class by class (802.1Q 36.1.2)
  control.pauses.receive(request, control.settings.link, now);
  egress_[in].set_paused(held_back(in));
  find_attention(now);
  awaken(in);
  consume(packet);
}

void Pipeline::consume(Packet* packet) {
  dead_[dead_count_++] = packet;
  if (dead_count_ != dead_.size()) return;
  dropped_.take(dead_.data(), dead_count_);
  dead_count_ = 0;
}

// --- frames that we send
// ----------------------------------------------------------------------------------------------

// Before all queued data, whatever is paused (802.1Q 36.1.3.3).
unsigned Pipeline::send_control(PortId out, Packet** packets, unsigned room, Time now) {
  if (room == 0 || source_ == nullptr || !egress_[out].may_send_at(now)) return 0;
  Packet* packet = source_->make();
  if (packet == nullptr) return 0;  // next time
  PortControl& control = controls_[out];
  const flowctl::PfcRequest request = control.sender.take(now);
  flowctl::write_pfc(frame_of(packet), control.settings.source, request);
  packet->data_len = flowctl::kPfcFrameBytes;
  packet->pkt_len = flowctl::kPfcFrameBytes;
  PacketMeta& meta = meta_of(packet);
  static_cast<HeaderFacts&>(meta) = {};
  meta.out_port = out;
  egress_[out].take_wire(flowctl::kPfcFrameBytes, now);
  telemetry::FlowControlCounters& counters = counters_.flow_control[out];
  counters.tx_frames.add(1);
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    if (((request.classes >> tc) & 1U) == 0) continue;
    (request.quanta[tc] != 0 ? counters.tx_pause : counters.tx_resume)[tc].add(1);
  }
  packets[0] = packet;
  find_attention(now);
  return 1;
}

// Priority groups have crossed XOFF or XON: their ports say so to their peers, or leave it to their NICs.
void Pipeline::follow_buffer(Time now) {
  buffer_.take_changed([this, now](PortId port) {
    PortControl& control = controls_[port];
    control.closed = buffer_.xoff(port) & control.settings.by_nic;
    control.sender.want(buffer_.xoff(port) & control.settings.classes);
    if (control.sender.is_due(now)) awaken(port);
  });
}

void Pipeline::settle_buffer(Time now) {
  buffer_.settle();
  if (buffer_.has_changed()) follow_buffer(now);
}

// --- time
// -------------------------------------------------------------------------------------------------------------

void Pipeline::attend(Time now) {
  if (lanes_ != nullptr) return attend_lanes(now);
  if (resequencer_ != nullptr && resequencer_->holds_any()) {
    resequencer_->expire(now, [this](Packet* packet) { send_on_in_turn(packet); });
    if (buffer_.has_changed()) follow_buffer(now);
    flush_drops();
  }
  for (PortId port = 0; port < controls_.size(); ++port) {
    PortControl& control = controls_[port];
    if (control.settings.classes == 0) continue;
    const uint8_t before_now = control.pauses.paused();
    const uint8_t paused = control.pauses.expire(now);
    egress_[port].set_paused(held_back(port));
    if (paused != before_now || control.sender.is_due(now)) awaken(port);
  }
  if (watching_ && !before(now, watch_at_)) look_after_queues(now);
  find_attention(now);
}

// A frame that is due already waits for the wire alone.
void Pipeline::find_attention(Time now) {
  attention_ = false;
  const auto consider = [this](Time at) {
    if (!attention_ || before(at, attention_at_)) attention_at_ = at;
    attention_ = true;
  };
  bool paused = false;
  for (const PortControl& control : controls_) {
    if (control.pauses.paused() != 0) {
      consider(control.pauses.next_expiry());
      paused = true;
    }
    if (control.sender.told() != 0 && !control.sender.is_due(now)) consider(control.sender.refresh_at());
  }
  if (resequencer_ != nullptr && resequencer_->holds_any()) consider(resequencer_->next_expiry());
  // Only while there is something to find: the lab's clock would never come to rest.
  const bool watch = !watches_.empty() && (paused || stormed_ != 0);
  if (watch && !watching_) watch_at_ = now + watch_interval_;
  watching_ = watch;
  if (watch) consider(watch_at_);
}

// The same, after packets have come to the resequencer: it may want to be asked earlier than anything else.
void Pipeline::find_attention_to_held() {
  if (!resequencer_->holds_any()) return;
  if (!attention_ || before(resequencer_->next_expiry(), attention_at_)) attention_at_ = resequencer_->next_expiry();
  attention_ = true;
}

void Pipeline::awaken(PortId port) {
  if (is_awakened_[port]) return;
  is_awakened_[port] = true;
  awakened_.push_back(port);
}

}  // namespace heddle::dataplane
