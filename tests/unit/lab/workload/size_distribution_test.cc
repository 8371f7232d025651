#include "lab/workload/size_distribution.h"

#include <cmath>

#include <gtest/gtest.h>

#include "net/error.h"

namespace heddle::lab {
namespace {

// Published means. Sources: the distributions' points as shipped with HPCC (SIGCOMM 2019; WebSearch, Hadoop) and
// ConWeave (SIGCOMM 2023; AliStorage2019, Solar2022), mean = sum of midpoint × probability. Tolerance: the digits given
// there.
TEST(SizeDistribution, MeansAreThePublishedOnes) {
  const struct {
    const char* name;
    double mean;
    double tolerance;
    size_t points;
    double largest;
  } rows[] = {{"websearch", 1'711'250, 1, 12, 30e6},
              {"hadoop", 120'421, 1, 20, 10e6},
              {"fb-hadoop", 120'421, 1, 20, 10e6},
              {"ali-storage", 40'870, 1, 9, 2e6},
              {"solar", 39'424, 1, 8, 262'144}};
  for (const auto& row : rows) {
    const SizeDistribution& distribution = find_size_distribution(row.name);
    EXPECT_NEAR(distribution.mean(), row.mean, row.tolerance) << row.name;
    EXPECT_EQ(distribution.points().size(), row.points) << row.name;
    EXPECT_EQ(distribution.quantile(1), row.largest) << row.name;
  }
}

TEST(SizeDistribution, SamplesFollowTheDistribution) {
  for (const std::string& name : size_distribution_names()) {
    const SizeDistribution& distribution = find_size_distribution(name);
    Random random(9);
    constexpr int kSamples = 200'000;
    std::vector<int> at_most(distribution.points().size(), 0);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < kSamples; ++i) {
      const auto bytes = static_cast<double>(distribution.sample(random));
      ASSERT_GE(bytes, 1);
      sum += bytes;
      squares += bytes * bytes;
      for (size_t p = 0; p < at_most.size(); ++p) at_most[p] += bytes <= distribution.points()[p].bytes ? 1 : 0;
    }
    const double mean = sum / kSamples;
    const double deviation = std::sqrt((squares / kSamples - mean * mean) / kSamples);
    EXPECT_NEAR(mean, distribution.mean() + 0.5, 5 * deviation) << name;  // rounded up
    for (size_t p = 1; p < at_most.size(); ++p) {
      const double share = distribution.points()[p].probability;
      EXPECT_NEAR(at_most[p] / double{kSamples}, share, 5 * std::sqrt(share * (1 - share) / kSamples) + 1e-4)
          << name << " at " << distribution.points()[p].bytes;
    }
  }
}

TEST(SizeDistribution, InterpolatesBetweenPointsAndSteps) {
  const SizeDistribution distribution("test", {{100, 0}, {200, 0.5}, {200, 0.75}, {1000, 0.75}, {2000, 1}});
  const struct {
    const char* what;
    double probability;
    double bytes;
  } rows[] = {{"the smallest", 0, 100},     {"in the first segment", 0.25, 150},  {"within a step", 0.6, 200},
              {"beyond a gap", 0.76, 1040}, {"in the last segment", 0.875, 1500}, {"the largest", 1, 2000}};
  for (const auto& row : rows) EXPECT_NEAR(distribution.quantile(row.probability), row.bytes, 1e-9) << row.what;
  EXPECT_NEAR(distribution.mean(), 0.5 * 150 + 0.25 * 200 + 0.25 * 1500, 1e-9);
  Random random(1);
  EXPECT_EQ(SizeDistribution::constant(77).sample(random), 77U);
  EXPECT_EQ(SizeDistribution::constant(77).mean(), 77);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t bytes = distribution.sample(random);
    EXPECT_TRUE((bytes >= 100 && bytes <= 200) || (bytes >= 1000 && bytes <= 2000)) << bytes;
  }
}

TEST(SizeDistribution, NamesAreListedWhenOneIsUnknown) {
  try {
    find_size_distribution("web");
    ADD_FAILURE();
  } catch (const Error& error) {
    for (const std::string& name : size_distribution_names()) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      EXPECT_EQ(find_size_distribution(name).name(), name);
    }
  }
}

TEST(SizeDistributionFile, ReadsPercentFractionsAndTheThreeColumnsOfNs2) {
  const struct {
    const char* what;
    const char* text;
    double unit;
  } rows[] = {{"percent", "0 0\n1000 50\n3000 100\n", 1},
              {"fractions", "0 0\n1000 0.5\n3000 1\n", 1},
              {"comments, tabs, blank lines, carriage returns, no end of line",
               "# sizes\r\n0\t0\r\n\r\n1000 50 # half\r\n3000 100.0", 1},
              {"three columns, in packets of 1,000 bytes", "0 1 0\n1 1 0.5\n3 1 1\n", 1000}};
  for (const auto& row : rows) {
    const SizeDistribution distribution = read_size_distribution(row.text, "sizes.txt", row.unit);
    EXPECT_NEAR(distribution.mean(), 0.5 * 500 + 0.5 * 2000, 1e-6) << row.what;
    EXPECT_NEAR(distribution.quantile(0.75), 2000, 1e-6) << row.what;
  }
}

TEST(SizeDistributionFile, RefusesWhatIsNoDistribution) {
  const struct {
    const char* what;
    const char* text;
    const char* says;
  } rows[] = {{"nothing", "", "sizes.txt: holds no points"},
              {"one point", "5 100\n", "at least two points"},
              {"a first probability above 0", "0 10\n5 100\n", "first point"},
              {"a last percentage below 100", "0 0\n5 99\n", "last point"},
              {"a last fraction below 1", "0 0\n5 0.99\n", "last point"},
              {"falling sizes", "0 0\n50 10\n40 100\n", "sizes.txt:3: "},
              {"falling probabilities", "0 0\n50 60\n\n70 50\n80 100\n", "sizes.txt:4: "},
              {"too many columns", "0 0\n1 2 3 4\n", "sizes.txt:2: 4 columns"},
              {"one column", "0\n", "sizes.txt:1: 1 columns"},
              {"words", "0 0\nmany 100\n", "sizes.txt:2: size"},
              {"a negative size", "-1 0\n5 100\n", "sizes.txt:1: size"},
              {"not a number", "0 0\nnan 100\n", "sizes.txt:2: size"},
              {"more than all", "0 0\n5 101\n", "sizes.txt:2: probability"},
              {"an endless size", "0 0\n1e300 100\n", "sizes.txt:2: size"},
              {"nothing but zero", "0 0\n0 100\n", "largest size"}};
  for (const auto& row : rows) {
    try {
      read_size_distribution(row.text, "sizes.txt");
      ADD_FAILURE() << row.what << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
      EXPECT_NE(std::string(error.what()).find(row.says), std::string::npos) << row.what << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace heddle::lab
