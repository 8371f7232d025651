#include "lb/flow_hash.h"

namespace heddle::lb {

FlowHasher::FlowHasher(const HashSettings& settings) {
  for (size_t i = 0; i < seed_.size(); ++i)
    seed_[i] = mix64(settings.seed + i) | 1U;  // odd: a multiplier loses no bits
  for (size_t kind = 0; kind < profiles_.size(); ++kind) {
    const uint16_t fields = settings.fields[kind];
    const auto bits = [fields](HashField field, uint64_t mask) { return (fields & field) != 0 ? mask : 0; };
    Profile& profile = profiles_[kind];
    profile.source = bits(kSourceIp, ~uint64_t{0});
    profile.destination = bits(kDestinationIp, ~uint64_t{0});
    profile.addresses4 = bits(kSourceIp, 0x00000000ffffffff) | bits(kDestinationIp, 0xffffffff00000000);
    profile.transport = bits(kSourcePort, 0x000000000000ffff) | bits(kDestinationPort, 0x00000000ffff0000) |
                        bits(kProtocol, 0x000000ff00000000) | bits(kDestQp, kLastThree);
    profile.per_packet = bits(kOpcode, 0x00000000000000ff) | bits(kPsn, kLastThree);
  }
}

uint64_t FlowHasher::add_per_packet(uint64_t h, const uint8_t* bth, const Profile& profile) const {
  const uint64_t opcode = bth[0];
  const uint64_t psn = net::load<uint64_t>(bth + 4) & kLastThree;
  return mix(h ^ seed_[1], ((opcode | psn) & profile.per_packet) ^ seed_[0]);
}

}  // namespace heddle::lb
