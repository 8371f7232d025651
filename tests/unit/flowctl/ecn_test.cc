// WRED: how often it strikes at each depth, against its curve; and a mark, byte by byte.
#include "flowctl/ecn.h"

#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/frames.h"

namespace heddle::flowctl {
namespace {

// Share of packets struck at every depth, within four standard deviations of a binomial draw (one miss in 16,000).
TEST(Wred, StrikesAsOftenAsItsCurveSays) {
  const WredCurve curves[] = {
      {.min_bytes = 100'000, .max_bytes = 400'000, .max_probability = 0.2},     // ConWeave
      {.min_bytes = 400'000, .max_bytes = 1'600'000, .max_probability = 0.2},   // HPCC at 100G
      {.min_bytes = 500'000, .max_bytes = 2'000'000, .max_probability = 0.05},  // sonic-mgmt's test plan
      {.min_bytes = 0, .max_bytes = 1'000, .max_probability = 1},               // steep
      {.min_bytes = 300'000, .max_bytes = 1'200'000, .max_probability = 0.8},   // SimAI at 200G
  };
  constexpr int kDepths = 24;
  constexpr int kDraws = 40'000;
  Random random(42);
  for (const WredCurve& curve : curves) {
    const Wred wred(curve);
    for (int i = 0; i <= kDepths; ++i) {
      const uint64_t span = curve.max_bytes - curve.min_bytes;
      const uint64_t depth = curve.min_bytes + span * static_cast<uint64_t>(i) / kDepths;
      int struck = 0;
      for (int draw = 0; draw < kDraws; ++draw) struck += wred.strikes(depth, random) ? 1 : 0;
      const double share = static_cast<double>(i) / kDepths;
      const double p = i == kDepths ? 1 : share * curve.max_probability;
      const double sigma = std::sqrt(p * (1 - p) / kDraws);
      EXPECT_NEAR(static_cast<double>(struck) / kDraws, p, 4 * sigma + 1e-5) << curve.min_bytes << " at " << depth;
    }
  }
}

TEST(Wred, ItsEndsAreExact) {
  Random random(1);
  const Wred wred({.min_bytes = 1000, .max_bytes = 2000, .max_probability = 0.5});
  const Wred step({.min_bytes = 1000, .max_bytes = 1000, .max_probability = 1});
  const Wred off;
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_FALSE(wred.strikes(0, random));
    ASSERT_FALSE(wred.strikes(1000, random));
    ASSERT_TRUE(wred.strikes(2000, random));
    ASSERT_TRUE(wred.strikes(~uint64_t{0} - 1, random));
    ASSERT_FALSE(step.strikes(1000, random));
    ASSERT_TRUE(step.strikes(1001, random));
    ASSERT_FALSE(off.strikes(uint64_t{1} << 60U, random));
  }
  EXPECT_FALSE(off.is_on());
  EXPECT_TRUE(step.is_on());
}

TEST(EcnMark, Ipv4ChangesTwoBitsAndTheChecksumAlone) {
  Random random(3);
  for (int i = 0; i < 20'000; ++i) {
    support::Bytes ip = support::ipv4(
        {.tos = static_cast<uint8_t>(random.next()), .ttl = static_cast<uint8_t>(random.next())}, support::pattern(8));
    const support::Bytes before = ip;
    if (!is_capable(ecn_of(ip.data(), L3::kIpv4))) continue;
    mark_ce(ip.data(), L3::kIpv4);
    ASSERT_EQ(ecn_of(ip.data(), L3::kIpv4), Ecn::kCe);
    ASSERT_TRUE(net::ipv4_header_is_intact(ip.data())) << "TOS " << int{before[1]};
    ASSERT_EQ(ip[1] & 0xfc, before[1] & 0xfc) << "the DSCP is not ours to change";
    for (size_t at = 0; at < ip.size(); ++at) {
      ASSERT_TRUE(at == 1 || at == 10 || at == 11 || ip[at] == before[at]) << at;
    }
  }
}

TEST(EcnMark, Ipv6ChangesTwoBitsAlone) {
  for (unsigned tos = 0; tos < 256; ++tos) {
    std::array<uint8_t, 40> ip{};
    ip[0] = static_cast<uint8_t>(0x60U | tos >> 4U);
    ip[1] = static_cast<uint8_t>((tos & 15U) << 4U | 0x0aU);  // and four bits of a flow label
    ASSERT_EQ(ecn_of(ip.data(), L3::kIpv6), static_cast<Ecn>(tos & 3U));
    const auto before = ip;
    mark_ce(ip.data(), L3::kIpv6);
    ASSERT_EQ(ecn_of(ip.data(), L3::kIpv6), Ecn::kCe);
    ASSERT_EQ(ip[0], before[0]);
    ASSERT_EQ(ip[1] | 0x30, before[1] | 0x30);
    ASSERT_TRUE(std::equal(ip.begin() + 2, ip.end(), before.begin() + 2));
  }
}

TEST(EcnMark, OnlyEctIsCapable) {
  EXPECT_FALSE(is_capable(Ecn::kNotEct));
  EXPECT_TRUE(is_capable(Ecn::kEct0));
  EXPECT_TRUE(is_capable(Ecn::kEct1));
  EXPECT_FALSE(is_capable(Ecn::kCe));
}

}  // namespace
}  // namespace heddle::flowctl
