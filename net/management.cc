#include "net/management.h"

#include <cstring>

namespace heddle::net {

namespace {

constexpr uint8_t kUdSendOnly = 0x64;       // IBTA table 38
constexpr uint8_t kSubnetClass = 0x01;      // LID routed, IBTA 13.4.4
constexpr uint8_t kTrap = 0x05;             // IBTA 13.4.5
constexpr uint16_t kNoticeAttribute = 0x2;  // IBTA 13.4.8.2
constexpr uint8_t kUrgent = 0x01;           // type of the notice; not generic, which bit 7 would say
constexpr uint32_t kVendor = 0x020000;      // no vendor's: locally administered
constexpr uint16_t kReachTrap = 1;

// The Notice attribute (IBTA 13.4.8.2) with details of our own in it.
struct Notice {
  uint8_t generic_type;  // IsGeneric 1, Type 7
  Be24 vendor;
  Be16 device;  // of a vendor's trap: which
  Be16 issuer;  // LID
  Be16 toggle_count;
  uint8_t restored;
  uint8_t count;
  struct Range {
    Be16 first;
    Be16 count;
  };
  std::array<Range, ReachNotice::kMostRanges> ranges;
};
static_assert(sizeof(Notice) == 36 && offsetof(Notice, restored) == 10);

constexpr size_t kMadAt = sizeof(Lrh) + sizeof(Bth) + sizeof(Deth);
constexpr size_t kNoticeAt = kMadAt + sizeof(LidRoutedSmp);
static_assert(kNoticeAt + sizeof(Notice) == kNoticeHeaders);

}  // namespace

void write_reach_notice(uint8_t* packet, uint16_t lid, uint32_t number, const ReachNotice& notice) {
  std::memset(packet, 0, kNoticeHeaders);
  auto* lrh = header_at<Lrh>(packet, 0);
  lrh->vl_version = kManagementLane << 4U;
  lrh->sl_next = kLnhBth;
  lrh->destination = kPermissiveLid;
  lrh->length = static_cast<uint16_t>((kManagementFrame - kVcrcBytes) / 4);
  lrh->source = lid;
  auto* bth = header_at<Bth>(packet, sizeof(Lrh));
  bth->opcode = kUdSendOnly;
  bth->pkey = kDefaultPartition;
  bth->psn = number & 0xffffffU;
  auto* smp = header_at<LidRoutedSmp>(packet, kMadAt);
  smp->mad.base_version = smp->mad.class_version = 1;
  smp->mad.management_class = kSubnetClass;
  smp->mad.method = kTrap;
  smp->mad.transaction_high = notice.sweep;
  smp->mad.transaction_low = number;
  smp->mad.attribute = kNoticeAttribute;
  auto* to = header_at<Notice>(packet, kNoticeAt);
  to->generic_type = kUrgent;
  to->vendor = kVendor;
  to->device = kReachTrap;
  to->issuer = lid;
  to->restored = notice.restored ? 1 : 0;
  to->count = notice.count;
  for (size_t i = 0; i < notice.count; ++i) {
    to->ranges[i].first = notice.ranges[i].first;
    to->ranges[i].count = notice.ranges[i].count;
  }
}

bool parse_reach_notice(const uint8_t* packet, size_t bytes, ReachNotice& notice) {
  if (bytes < kNoticeHeaders) return false;
  const auto* smp = header_at<LidRoutedSmp>(packet, kMadAt);
  const auto* from = header_at<Notice>(packet, kNoticeAt);
  const bool ours = virtual_lane(*header_at<Lrh>(packet, 0)) == kManagementLane &&
                    header_at<Bth>(packet, sizeof(Lrh))->opcode == kUdSendOnly &&
                    smp->mad.management_class == kSubnetClass && smp->mad.method == kTrap &&
                    smp->mad.attribute == kNoticeAttribute && from->generic_type == kUrgent &&
                    from->vendor == kVendor && from->device == kReachTrap;
  if (!ours || from->count > ReachNotice::kMostRanges || from->restored > 1) return false;
  notice.sweep = static_cast<uint16_t>(smp->mad.transaction_high);
  notice.restored = from->restored == 1;
  notice.count = from->count;
  for (size_t i = 0; i < notice.count; ++i) {
    notice.ranges[i] = {from->ranges[i].first, from->ranges[i].count};
    if (notice.ranges[i].first + notice.ranges[i].count > 0x10000) return false;
  }
  return true;
}

}  // namespace heddle::net
