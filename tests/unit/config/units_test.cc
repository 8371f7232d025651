#include "config/units.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::config {
namespace {

struct Case {
  std::string what;
  std::string text;
  std::optional<uint64_t> value;  // nothing: refused
};

template <typename Parse>
void expect(const std::vector<Case>& cases, const Parse& parse) {
  for (const Case& test : cases) EXPECT_EQ(parse(test.text), test.value) << test.what << ": '" << test.text << "'";
}

TEST(Units, Integers) {
  expect(
      {
          {"zero", "0", 0},
          {"the largest", "18446744073709551615", UINT64_MAX},
          {"one more", "18446744073709551616", {}},
          {"nothing", "", {}},
          {"a sign", "+1", {}},
          {"a negative number", "-1", {}},
          {"a leading zero", "01", {}},
          {"a fraction", "1.0", {}},
          {"an exponent", "1e3", {}},
          {"hexadecimal", "0x10", {}},
          {"something behind", "1 ", {}},
          {"something before", " 1", {}},
      },
      [](const std::string& text) { return parse_integer(text); });
}

TEST(Units, Rates) {
  expect(
      {
          {"giga", "100G", 100'000'000'000},
          {"giga in full", "25Gbps", 25'000'000'000},
          {"with a space", "400 Gbps", 400'000'000'000},
          {"a fraction", "2.5G", 2'500'000'000},
          {"bit/s", "10Gbit/s", 10'000'000'000},
          {"b/s", "10Gb/s", 10'000'000'000},
          {"as tc writes it", "10Gbit", 10'000'000'000},
          {"tera", "1.6T", 1'600'000'000'000},
          {"mega", "1M", 1'000'000},
          {"kilo", "64k", 64'000},
          {"kilo in capitals", "64K", 64'000},
          {"bits", "9600bps", 9600},
          {"exact to the bit", "0.123456789G", 123'456'789},
          {"zeros behind do not count", "1.50000000000000000000000G", 1'500'000'000},
          {"unlimited", "unlimited", 0},
          {"no unit", "100", {}},
          {"zero would be unlimited", "0G", {}},
          {"zero with a fraction", "0.0G", {}},
          {"half a bit", "0.0000000005G", {}},
          {"bytes", "1GB", {}},
          {"milli", "1m", {}},
          {"small g", "1g", {}},
          {"two units", "1GG", {}},
          {"only a unit", "G", {}},
          {"two spaces", "1  G", {}},
          {"a space behind", "1G ", {}},
          {"no digit before the point", ".5G", {}},
          {"no digit behind the point", "5.G", {}},
          {"two points", "1.2.3G", {}},
          {"a negative rate", "-1G", {}},
          {"beyond 64 bits", "18446745T", {}},
          {"digits beyond 64 bits", "99999999999999999999", {}},
          {"nothing", "", {}},
          {"infinity", "inf", {}},
      },
      [](const std::string& text) -> std::optional<uint64_t> {
        const auto rate = parse_rate(text);
        if (!rate) return std::nullopt;
        return rate->bits_per_second();
      });
}

TEST(Units, Sizes) {
  expect(
      {
          {"plain bytes", "1500", 1500},
          {"bytes with a unit", "1500B", 1500},
          {"zero", "0", 0},
          {"decimal mega", "2MB", 2'000'000},
          {"binary mega", "2MiB", 2'097'152},
          {"half a binary kilo", "0.5KiB", 512},
          {"decimal kilo, both ways", "1KB", 1000},
          {"decimal kilo, both ways", "1kB", 1000},
          {"giga", "9 GB", 9'000'000'000},
          {"tebi", "1TiB", 1'099'511'627'776},
          {"the largest", "16777215.99999904632568359375TiB", {}},  // more digits than fit: refused, not rounded
          {"beyond 64 bits", "16777216TiB", {}},
          {"just within 64 bits", "16777215TiB", 18446742974197923840U},
          {"half a byte", "0.5", {}},
          {"a third of a binary kilo", "0.3KiB", {}},
          {"an ambiguous unit", "2M", {}},
          {"small letters", "2mb", {}},
          {"bits", "2Mb", {}},
          {"kib in small letters", "2kib", {}},
          {"a leading zero", "02MB", {}},
      },
      [](const std::string& text) { return parse_bytes(text); });
}

TEST(Units, Durations) {
  expect(
      {
          {"picoseconds", "10ps", 10},
          {"nanoseconds", "250ns", 250'000},
          {"microseconds", "1us", 1'000'000},
          {"microseconds in Greek", "1µs", 1'000'000},
          {"a fraction of a millisecond", "1.5ms", 1'500'000'000},
          {"seconds", "1s", 1'000'000'000'000},
          {"one picosecond in seconds", "0.000000000001s", 1},
          {"a tenth, which no double holds", "0.1us", 100'000},
          {"zero without a unit", "0", 0},
          {"zero with one", "0us", 0},
          {"213 days", "18446744s", 18'446'744'000'000'000'000U},
          {"one second more", "18446745s", {}},
          {"finer than a picosecond", "0.5ps", {}},
          {"no unit", "5", {}},
          {"minutes", "1min", {}},
          {"capitals", "1US", {}},
          {"a negative one", "-1us", {}},
      },
      [](const std::string& text) { return parse_duration(text); });
}

TEST(Units, Shares) {
  struct Row {
    std::string what;
    std::string text;
    std::optional<double> value;
  };
  const std::vector<Row> cases{
      {"per cent", "5%", 0.05},
      {"per cent with a space", "20 %", 0.2},
      {"a fraction of a per cent", "0.1%", 0.001},
      {"a plain fraction", "0.2", 0.2},
      {"all", "100%", 1.0},
      {"all, plain", "1", 1.0},
      {"nothing", "0", 0.0},
      {"nothing in per cent", "0%", 0.0},
      {"7 %, where 7 × 0.01 would be another double", "7%", 0.07},
      {"more than all", "100.1%", {}},
      {"more than all, plain", "1.1", {}},
      {"a per mille sign", "1‰", {}},
      {"an exponent", "1e-3", {}},
      {"a negative one", "-5%", {}},
      {"too many digits", "0.1234567890123456", {}},
      {"empty", "", {}},
  };
  for (const Row& test : cases) EXPECT_EQ(parse_share(test.text), test.value) << test.what << ": '" << test.text << "'";
}

TEST(Units, Printed) {
  EXPECT_EQ(print_rate(Rate::gbps(100)), "100G");
  EXPECT_EQ(print_rate(Rate(2'500'000'000)), "2.5G");
  EXPECT_EQ(print_rate(Rate(123'456'789)), "123.456789M");
  EXPECT_EQ(print_rate(Rate(999)), "999bps");
  EXPECT_EQ(print_rate(Rate::unlimited()), "unlimited");
  EXPECT_EQ(print_bytes(0), "0B");
  EXPECT_EQ(print_bytes(1522), "1522B");
  EXPECT_EQ(print_bytes(2'000'000), "2MB");
  EXPECT_EQ(print_bytes(2'097'152), "2MiB");
  EXPECT_EQ(print_bytes(1'500'000), "1.5MB");
  EXPECT_EQ(print_duration(0), "0s");
  EXPECT_EQ(print_duration(1'500'000), "1.5us");
  EXPECT_EQ(print_duration(UINT64_MAX), "18446744.073709551615s");
  EXPECT_EQ(print_share(0.05), "0.05");
}

// Whatever is printed is read back to the same value: at every power of ten and of two and its neighbours, and at
// random values of every magnitude.
TEST(Units, RoundTrip) {
  std::vector<uint64_t> values{0, 1, UINT64_MAX};
  for (uint64_t power = 10; power < UINT64_MAX / 10; power *= 10) {
    for (const uint64_t value : {power - 1, power, power + 1, 3 * power / 2}) values.push_back(value);
  }
  for (unsigned bit = 1; bit < 64; ++bit) {
    for (const uint64_t value : {(1ULL << bit) - 1, 1ULL << bit, (1ULL << bit) + 1}) values.push_back(value);
  }
  Random random(7);
  for (int i = 0; i < 10'000; ++i) values.push_back(random.next() >> random.below(64));
  for (const uint64_t value : values) {
    // A number of 20 digits has no decimal text that fits; no rate, size or time of a network is that large.
    if (value >= 10'000'000'000'000'000'000U) continue;
    EXPECT_EQ(parse_bytes(print_bytes(value)), value) << print_bytes(value);
    EXPECT_EQ(parse_duration(print_duration(value)), value) << print_duration(value);
    EXPECT_EQ(parse_rate(print_rate(Rate(value))), Rate(value)) << print_rate(Rate(value));
    EXPECT_EQ(parse_integer(std::to_string(value)), value);
  }
  for (int i = 0; i <= 1000; ++i) {
    const double share = i / 1000.0;
    EXPECT_EQ(parse_share(print_share(share)), share);
  }
}

}  // namespace
}  // namespace heddle::config
