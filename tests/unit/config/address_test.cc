#include "config/address.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::config {
namespace {

TEST(Addresses, Macs) {
  struct Case {
    std::string what;
    std::string text;
    std::optional<net::Mac> mac;
  };
  const std::vector<Case> cases{
      {"small letters", "02:00:00:00:00:ab", net::Mac{2, 0, 0, 0, 0, 0xab}},
      {"capitals", "02:00:00:00:00:AB", net::Mac{2, 0, 0, 0, 0, 0xab}},
      {"hyphens (IEEE 802)", "02-00-00-00-00-ab", net::Mac{2, 0, 0, 0, 0, 0xab}},
      {"broadcast", "ff:ff:ff:ff:ff:ff", net::Mac{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
      {"both separators", "02:00-00:00:00:ab", {}},
      {"five bytes", "02:00:00:00:ab", {}},
      {"seven bytes", "02:00:00:00:00:00:ab", {}},
      {"single digits", "2:0:0:0:0:ab", {}},
      {"no separators", "0200000000ab", {}},
      {"no hexadecimal digit", "02:00:00:00:00:ag", {}},
      {"as Cisco writes it", "0200.0000.00ab", {}},
      {"a separator at the end", "02:00:00:00:00:a:", {}},
      {"empty", "", {}},
  };
  for (const Case& test : cases) EXPECT_EQ(parse_mac(test.text), test.mac) << test.what;
  EXPECT_EQ(print_mac({2, 0, 0, 0xa, 0, 0xff}), "02:00:00:0a:00:ff");
}

TEST(Addresses, KindsOfMac) {
  EXPECT_TRUE(is_group({1, 0, 0x5e, 0, 0, 1}));
  EXPECT_TRUE(is_group({0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
  EXPECT_FALSE(is_group({2, 0, 0, 0, 0, 1}));
  EXPECT_TRUE(is_zero({}));
  EXPECT_FALSE(is_zero({0, 0, 0, 0, 0, 1}));
}

TEST(Addresses, Prefixes) {
  struct Case {
    std::string what;
    std::string text;
    std::string printed;  // empty: refused
    std::string network;  // without host bits
  };
  const std::vector<Case> cases{
      {"a network", "198.51.100.0/24", "198.51.100.0/24", "198.51.100.0/24"},
      {"the default route", "0.0.0.0/0", "0.0.0.0/0", "0.0.0.0/0"},
      {"one host", "192.0.2.1/32", "192.0.2.1/32", "192.0.2.1/32"},
      {"host bits are kept", "198.51.100.7/24", "198.51.100.7/24", "198.51.100.0/24"},
      {"host bits within a byte", "10.255.255.255/9", "10.255.255.255/9", "10.128.0.0/9"},
      {"all host bits", "255.255.255.255/0", "255.255.255.255/0", "0.0.0.0/0"},
      {"IPv6", "2001:db8::/32", "2001:db8::/32", "2001:db8::/32"},
      {"IPv6 written at length (RFC 5952 shortens it)", "2001:0DB8:0:0:0:0:0:1/128", "2001:db8::1/128",
       "2001:db8::1/128"},
      {"the IPv6 default route", "::/0", "::/0", "::/0"},
      {"IPv6 host bits", "2001:db8::1/64", "2001:db8::1/64", "2001:db8::/64"},
      {"IPv6 host bits within a byte", "ffff:ffff::/19", "ffff:ffff::/19", "ffff:e000::/19"},
      {"no length", "10.0.0.0", "", ""},
      {"an empty length", "10.0.0.0/", "", ""},
      {"a length beyond IPv4", "10.0.0.0/33", "", ""},
      {"a length beyond IPv6", "::/129", "", ""},
      {"a length far beyond", "10.0.0.0/4294967304", "", ""},
      {"a negative length", "10.0.0.0/-1", "", ""},
      {"a mask", "10.0.0.0/255.0.0.0", "", ""},
      {"a length with a leading zero", "10.0.0.0/08", "", ""},
      {"three bytes", "10.0.0/24", "", ""},
      {"a byte beyond 255", "10.0.0.256/32", "", ""},
      {"octal bytes", "010.0.0.0/8", "", ""},
      {"a zone", "fe80::1%eth0/64", "", ""},
      {"a space", " 10.0.0.0/8", "", ""},
      {"a NUL within", std::string("10.0.0.0\0x/8", 12), "", ""},
      {"a name", "localhost/8", "", ""},
      {"empty", "", "", ""},
  };
  for (const Case& test : cases) {
    const auto prefix = parse_prefix(test.text);
    ASSERT_EQ(prefix.has_value(), !test.printed.empty()) << test.what;
    if (!prefix) continue;
    EXPECT_EQ(print_prefix(*prefix), test.printed) << test.what;
    EXPECT_EQ(print_prefix(without_host_bits(*prefix)), test.network) << test.what;
  }
}

TEST(Addresses, WithoutALength) {
  EXPECT_EQ(parse_address("10.255.0.1"), net::IpAddress(0x0aff0001));
  EXPECT_EQ(print_address(0x0aff0001), "10.255.0.1");
  const auto six = parse_address("2001:db8:0:0::1");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->family, IpFamily::kIpv6);
  EXPECT_EQ(print_address(*six), "2001:db8::1");
  for (const char* wrong : {"", "10.0.0.0/8", "10.0.0", "fe80::1%eth0", "a"})
    EXPECT_FALSE(parse_address(wrong)) << wrong;
  EXPECT_FALSE(parse_address(std::string_view("10.0.0.1\0x", 10))) << "a NUL within";
}

TEST(Addresses, Multicast) {
  EXPECT_TRUE(is_multicast(*parse_prefix("224.0.0.0/4")));
  EXPECT_TRUE(is_multicast(*parse_prefix("239.1.2.3/32")));
  EXPECT_TRUE(is_multicast(*parse_prefix("ff02::/16")));
  EXPECT_FALSE(is_multicast(*parse_prefix("223.255.255.0/24")));
  EXPECT_FALSE(is_multicast(*parse_prefix("0.0.0.0/0")));
  EXPECT_FALSE(is_multicast(*parse_prefix("::/0")));
  EXPECT_FALSE(is_multicast(*parse_prefix("fe80::/10")));
}

TEST(Addresses, PrefixRoundTrip) {
  Random random(11);
  for (int i = 0; i < 10'000; ++i) {
    IpPrefix prefix;
    prefix.family = i % 2 == 0 ? IpFamily::kIpv4 : IpFamily::kIpv6;
    const unsigned bytes = i % 2 == 0 ? 4 : 16;
    for (unsigned b = 0; b < bytes; ++b) prefix.address[b] = static_cast<uint8_t>(random.next());
    prefix.length = static_cast<uint8_t>(random.below(8 * bytes + 1));
    EXPECT_EQ(parse_prefix(print_prefix(prefix)), prefix) << print_prefix(prefix);
    const IpPrefix network = without_host_bits(prefix);
    EXPECT_EQ(without_host_bits(network), network);
  }
}

}  // namespace
}  // namespace heddle::config
