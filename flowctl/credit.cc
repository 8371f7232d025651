#include "flowctl/credit.h"

#include <cstring>

#include "net/infiniband.h"

namespace heddle::flowctl {

namespace {

constexpr unsigned kNarrowBits = 12;
constexpr uint32_t kNarrowMask = 0x0fff;
constexpr uint32_t kWideMask = 0x0fffffff;

// The LPCRC lies behind what it covers, its lower byte first.
void seal(uint8_t* packet, size_t covered) {
  const uint16_t crc = net::link_crc(packet, covered);
  std::memcpy(packet + covered, &crc, sizeof crc);
}
bool is_sealed(const uint8_t* packet, size_t covered) {
  return net::load<uint16_t>(packet + covered) == net::link_crc(packet, covered);
}

}  // namespace

uint32_t credit_packet_bytes(const CreditFormat& format) {
  return format.counter_bits <= kNarrowBits ? sizeof(net::FlowControlPacket) : sizeof(net::WideFlowControlPacket);
}

void write_credit_packet(uint8_t* packet, const CreditFormat& format, const CreditMessage& message) {
  if (format.counter_bits <= kNarrowBits) {
    auto* narrow = net::header_at<net::FlowControlPacket>(packet, 0);
    narrow->op_fctbs = static_cast<uint16_t>(message.fctbs & kNarrowMask);
    narrow->vl_fccl = static_cast<uint16_t>(uint32_t{message.vl} << 12U | (message.fccl & kNarrowMask));
    seal(packet, offsetof(net::FlowControlPacket, lpcrc));
    return;
  }
  auto* wide = net::header_at<net::WideFlowControlPacket>(packet, 0);
  wide->op_fctbs = message.fctbs & kWideMask;
  wide->vl_fccl = uint32_t{message.vl} << 28U | (message.fccl & kWideMask);
  seal(packet, offsetof(net::WideFlowControlPacket, lpcrc));
}

bool parse_credit_packet(const uint8_t* packet, size_t bytes, const CreditFormat& format, CreditMessage& message) {
  if (bytes != credit_packet_bytes(format)) return false;
  if ((packet[0] >> 4U) != 0) return false;
  if (format.counter_bits <= kNarrowBits) {
    const auto* narrow = net::header_at<net::FlowControlPacket>(packet, 0);
    message.vl = static_cast<uint8_t>(narrow->vl_fccl >> 12U);
    message.fctbs = narrow->op_fctbs & kNarrowMask;
    message.fccl = narrow->vl_fccl & kNarrowMask;
    return is_sealed(packet, offsetof(net::FlowControlPacket, lpcrc));
  }
  const auto* wide = net::header_at<net::WideFlowControlPacket>(packet, 0);
  message.vl = static_cast<uint8_t>(wide->vl_fccl >> 28U);
  message.fctbs = wide->op_fctbs & kWideMask;
  message.fccl = wide->vl_fccl & kWideMask;
  return is_sealed(packet, offsetof(net::WideFlowControlPacket, lpcrc));
}

}  // namespace heddle::flowctl
