// Drop reasons: each has a name of its own that JSON and the command line can carry, and a meaning for people.
#include "net/drop_reason.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(DropReason, EveryReasonHasAUniqueName) {
  std::set<std::string_view> names;
  for (const DropText& text : kDropTexts) EXPECT_TRUE(names.insert(text.name).second) << text.name << " twice";
  EXPECT_EQ(names.size(), kDropReasons);
}

TEST(DropReason, NamesAreLowerCaseWordsWithUnderscores) {
  for (const DropText& text : kDropTexts) {
    EXPECT_FALSE(text.name.empty()) << "a reason without a text: the table is shorter than the enum";
    EXPECT_TRUE(std::all_of(text.name.begin(), text.name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    })) << text.name;
  }
}

TEST(DropReason, EveryMeaningIsOneLine) {
  std::set<std::string_view> meanings;
  for (const DropText& text : kDropTexts) {
    EXPECT_GE(text.meaning.size(), 10U) << text.name;
    EXPECT_EQ(text.meaning.find('\n'), std::string_view::npos) << text.name;
    EXPECT_TRUE(meanings.insert(text.meaning).second) << text.name << " has another reason's meaning";
  }
}

// Enum and table are two lists; these pairs fail if an entry is inserted in only one of them.
TEST(DropReason, NamesMatchTheEnumerators) {
  EXPECT_EQ(name_of(DropReason::kNone), "none");
  EXPECT_EQ(name_of(DropReason::kTooShort), "too_short");
  EXPECT_EQ(name_of(DropReason::kLinkLocalControl), "link_local_control");
  EXPECT_EQ(name_of(DropReason::kIpv4Checksum), "ipv4_checksum");
  EXPECT_EQ(name_of(DropReason::kIpv6PayloadLength), "ipv6_payload_length");
  EXPECT_EQ(name_of(DropReason::kMulticast), "multicast");
  EXPECT_EQ(name_of(DropReason::kTtlExpired), "ttl_expired");
  EXPECT_EQ(name_of(DropReason::kFrameTooLong), "frame_too_long");
  EXPECT_EQ(name_of(DropReason::kShutdown), "shutdown");
  EXPECT_EQ(name_of(DropReason::kKernelRing), "kernel_ring");
}

}  // namespace
}  // namespace heddle
