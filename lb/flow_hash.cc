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
                        bits(kProtocol, 0x000000ff00000000) | bits(kDestQp, kDestQpBits);
    profile.per_packet = bits(kOpcode, 0x00000000000000ff) | bits(kPsn, kDestQpBits);
  }
}

}  // namespace heddle::lb
