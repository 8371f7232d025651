#include "lab/engine/capture.h"

#include <algorithm>
#include <cstring>

#include "flowctl/credit.h"
#include "net/error.h"
#include "net/headers.h"
#include "net/icrc.h"
#include "net/infiniband.h"

namespace heddle::lab {

void CaptureBuffer::add(const Packet* packet, Time at) {
  Record& record = records_.emplace_back();
  record.at = at;
  record.frame_bytes = packet->pkt_len;
  record.headers.assign(frame_of(packet), frame_of(packet) + packet->data_len);
}

namespace {

// Wireshark dissects no shorter ones: two bytes of zero follow a flow-control packet.
constexpr size_t kErfLinkBytes = 8;

telemetry::LinkType type_of(LinkLayer layer) {
  return layer == LinkLayer::kInfiniband ? telemetry::LinkType::kInfiniband : telemetry::LinkType::kEthernet;
}
}  // namespace

Capture::Capture(const std::string& file, const std::string& port_name, Duration delay, LinkLayer layer)
    : delay_(delay), layer_(layer) {
  if (file.ends_with(".erf")) {
    open_erf(file);
    return;
  }
  pcapng_ = std::make_unique<telemetry::PcapngWriter>(file, "heddle " HEDDLE_VERSION);
  out_interface_ = pcapng_->add_interface(port_name + " out", type_of(layer));
  in_interface_ = pcapng_->add_interface(port_name + " in", type_of(layer));
}

void Capture::open_erf(const std::string& file) {
  if (layer_ != LinkLayer::kInfiniband) {
    throw_bad_input("--capture: found {} for Ethernet links; accepted: another ending, for pcapng", file);
  }
  erf_ = std::make_unique<telemetry::ErfWriter>(file);
}

void Capture::write(Time until) {
  for (CaptureBuffer::Record& record : out_.records()) waiting_.push_back({record.at, out_interface_, record});
  for (CaptureBuffer::Record& record : in_.records()) waiting_.push_back({record.at + delay_, in_interface_, record});
  out_.records().clear();
  in_.records().clear();
  // Stable, so that frames of one direction and time keep their order.
  std::stable_sort(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
    return a.at != b.at ? a.at < b.at : a.interface < b.interface;
  });
  size_t n = 0;
  while (n < waiting_.size() && waiting_[n].at < until) write_frame(waiting_[n++]);
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(n));
  if (pcapng_ != nullptr) pcapng_->flush();
  if (erf_ != nullptr) erf_->flush();
}

// The lab's payload is a length: in a file it becomes zeros, and the CRCs are the right ones for them. Pause frames and
// path probes are there whole and have none.
void Capture::write_frame(const Waiting& waiting) {
  const CaptureBuffer::Record& record = waiting.record;
  const bool credits = layer_ == LinkLayer::kInfiniband && record.frame_bytes <= flowctl::kLongestCreditPacket;
  if (credits && (erf_ == nullptr || record.frame_bytes != sizeof(net::FlowControlPacket))) return;
  frame_.assign(record.frame_bytes, 0);
  std::copy(record.headers.begin(), record.headers.end(), frame_.begin());
  if (credits) {
    frame_.resize(kErfLinkBytes);
  } else if (layer_ == LinkLayer::kInfiniband) {
    seal_infiniband(record);
  } else if (record.headers.size() + net::kIcrcBytes <= record.frame_bytes) {
    seal_roce(record);
  }
  put(waiting, credits ? telemetry::ErfType::kInfinibandLink : telemetry::ErfType::kInfiniband);
}

void Capture::put(const Waiting& waiting, telemetry::ErfType type) {
  if (erf_ != nullptr) {
    erf_->write(waiting.interface, waiting.at, type, frame_);
  } else {
    pcapng_->write(waiting.interface, waiting.at, frame_);
  }
}

void Capture::seal_roce(const CaptureBuffer::Record& record) {
  constexpr size_t kIp = sizeof(net::EthernetHeader);
  const size_t zeros = record.frame_bytes - record.headers.size() - net::kIcrcBytes;
  const uint32_t crc = net::icrc(frame_.data() + kIp, record.headers.size() - kIp, zeros);
  std::memcpy(frame_.data() + record.frame_bytes - net::kIcrcBytes, &crc, sizeof crc);
}

void Capture::seal_infiniband(const CaptureBuffer::Record& record) {
  const size_t vcrc_at = record.frame_bytes - net::kVcrcBytes;
  const size_t icrc_at = vcrc_at - net::kIcrcBytes;
  const size_t headers = record.headers.size();
  const uint32_t icrc = net::infiniband_icrc(frame_.data(), headers, icrc_at - headers);
  std::memcpy(frame_.data() + icrc_at, &icrc, sizeof icrc);
  const uint16_t vcrc = net::link_crc(frame_.data(), vcrc_at);
  std::memcpy(frame_.data() + vcrc_at, &vcrc, sizeof vcrc);
}

}  // namespace heddle::lab
