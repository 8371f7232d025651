// The flow hash: which packets belong together, in software, seeded per switch.
//
// tap, af_packet, ring and pcap ports never fill the NIC's hash, and a NIC's hash neither knows the RDMA queue pair nor
// differs between switches of different tiers. The seed is mixed in by multiplication: a CRC with another initial value
// is the same hash XOR a constant, so that a second tier would split the flows exactly as the first did (polarisation).
#pragma once

#include <array>
#include <cstdint>

#include "net/packet.h"
#include "net/random.h"

namespace heddle::lb {

// Fields that may enter the hash, as bits; names as `hash:` in the configuration spells them.
enum HashField : uint16_t {
  kSourceIp = 1U << 0U,
  kDestinationIp = 1U << 1U,
  kProtocol = 1U << 2U,
  kSourcePort = 1U << 3U,
  kDestinationPort = 1U << 4U,
  kDestQp = 1U << 5U,
  kOpcode = 1U << 6U,  // splits one message over paths: reorders
  kPsn = 1U << 7U,     // every packet its own path: reorders
};

inline constexpr uint16_t kIpFields = kSourceIp | kDestinationIp | kProtocol;
inline constexpr uint16_t kTcpUdpFields = kIpFields | kSourcePort | kDestinationPort;
inline constexpr uint16_t kRoceFields = kTcpUdpFields | kDestQp;

// Hash fields per PacketKind.
struct HashSettings {
  uint64_t seed = 1;
  std::array<uint16_t, 3> fields{kIpFields, kTcpUdpFields, kRoceFields};  // by PacketKind
};

class FlowHasher {
 public:
  explicit FlowHasher(const HashSettings& settings);

  // Hash of a parsed packet, uniform over 32 bits; reads only headers that parse found readable. Always inline: where
  // the packet's shape is known beforehand, all branches on it vanish.
  [[gnu::always_inline]] uint32_t hash(const uint8_t* frame, const HeaderFacts& headers) const;

 private:
  // Masks over the words below: a field that is not asked for is zeroed, without a branch.
  struct Profile {
    uint64_t source = 0;
    uint64_t destination = 0;
    uint64_t addresses4 = 0;  // source 32, destination 32 as they lie in an IPv4 header
    uint64_t transport = 0;   // source port 16, destination port 16, protocol 8, destination QP 24
    uint64_t per_packet = 0;  // opcode 8, zero 32, PSN 24: opt-in, they split flows
  };

  static constexpr size_t kBth = sizeof(net::UdpHeader);
  // The destination QP ends the BTH's bytes 0–7, the PSN its bytes 4–11.
  static constexpr uint64_t kLastThree = 0xffffff0000000000;

  uint64_t add_per_packet(uint64_t h, const uint8_t* bth, const Profile& profile) const;

  // 64×64→128-bit multiply, halves XORed: every input bit reaches every output bit.
  static uint64_t mix(uint64_t a, uint64_t b) {
    __extension__ using Uint128 = unsigned __int128;
    const Uint128 product = static_cast<Uint128>(a) * b;
    return static_cast<uint64_t>(product >> 64U) ^ static_cast<uint64_t>(product);
  }

  std::array<uint64_t, 4> seed_;
  std::array<Profile, 3> profiles_;
};

inline uint32_t FlowHasher::hash(const uint8_t* frame, const HeaderFacts& headers) const {
  const Profile& profile = profiles_[static_cast<size_t>(headers.kind)];
  const uint8_t* l4 = frame + headers.l4_offset;
  uint64_t transport = static_cast<uint64_t>(headers.protocol) << 32U;
  if (headers.kind != PacketKind::kIp) transport |= net::load<uint32_t>(l4);
  if (headers.kind == PacketKind::kRoce) transport |= net::load<uint64_t>(l4 + kBth) & kLastThree;  // destination QP
  transport &= profile.transport;

  const uint8_t* ip = frame + headers.l3_offset;
  uint64_t h;
  if (headers.l3 == L3::kIpv4) {
    h = mix((net::load<uint64_t>(ip + 12) & profile.addresses4) ^ seed_[0], transport ^ seed_[1]);
  } else {
    const uint64_t source = mix((net::load<uint64_t>(ip + 8) & profile.source) ^ seed_[0],
                                (net::load<uint64_t>(ip + 16) & profile.source) ^ seed_[1]);
    const uint64_t destination = mix((net::load<uint64_t>(ip + 24) & profile.destination) ^ seed_[2],
                                     (net::load<uint64_t>(ip + 32) & profile.destination) ^ seed_[3]);
    h = mix(source ^ transport ^ seed_[1], destination ^ seed_[2]);
  }
  h = mix(h ^ seed_[2], seed_[3]);
  if (headers.kind == PacketKind::kRoce && profile.per_packet != 0) [[unlikely]]
    h = add_per_packet(h, l4 + kBth, profile);
  return static_cast<uint32_t>(h >> 32U);
}

// Uniform choice among n by multiply-shift: no modulo, no bias worth naming.
constexpr unsigned scale_hash(uint32_t hash, unsigned n) {
  return static_cast<unsigned>((static_cast<uint64_t>(hash) * n) >> 32U);
}

}  // namespace heddle::lb
