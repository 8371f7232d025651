// The yardstick of the distribution tests, against published values.
#include "tests/support/statistics.h"

#include <gtest/gtest.h>

namespace heddle::support {
namespace {

// Critical values of the chi-square distribution: NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.4
// (upper critical values), printed to three decimals; a p-value read back from them is right to about 1 %.
struct Critical {
  double degrees;
  double p;
  double x;
};

TEST(ChiSquare, ReproducesPublishedCriticalValues) {
  for (const Critical& row :
       {Critical{1, 0.05, 3.841}, Critical{1, 0.001, 10.828}, Critical{2, 0.10, 4.605}, Critical{10, 0.05, 18.307},
        Critical{10, 0.001, 29.588}, Critical{31, 0.05, 44.985}, Critical{63, 0.01, 92.010}, Critical{63, 0.90, 49.111},
        Critical{100, 0.05, 124.342}, Critical{100, 0.001, 149.449}}) {
    EXPECT_NEAR(chi_square_tail(row.x, row.degrees) / row.p, 1, 0.01) << row.degrees << " degrees, p " << row.p;
  }
}

TEST(ChiSquare, TwoDegreesOfFreedomAreAnExponential) {
  for (const double x : {0.1, 1.0, 5.0, 18.42, 60.0}) {
    EXPECT_NEAR(chi_square_tail(x, 2) / std::exp(-x / 2), 1, 1e-9) << x;
  }
}

TEST(ChiSquare, SeesAnUnfairDieAndAcceptsAFairOne) {
  EXPECT_LT(uniform_p_value(std::vector<uint64_t>{1200, 1000, 1000, 1000, 1000, 800}), 1e-10);
  EXPECT_GT(uniform_p_value(std::vector<uint64_t>{1010, 985, 1003, 1021, 979, 1002}), 0.5);
}

TEST(Independence, SeesADiagonalAndAcceptsAProduct) {
  EXPECT_LT(independence_p_value(std::vector<uint64_t>{100, 50, 50, 100}, 2), 1e-6);
  EXPECT_NEAR(independence_p_value(std::vector<uint64_t>{100, 200, 300, 600}, 2), 1, 1e-9);
}

TEST(LargestDeviation, IsInUnitsOfOneCellsStandardDeviation) {
  // 4 cells of 400 draws: mean 100, σ = √(400 · ¼ · ¾) = 8.66.
  EXPECT_NEAR(largest_deviation(std::vector<uint64_t>{100, 100, 74, 126}), 3.0, 0.01);
}

}  // namespace
}  // namespace heddle::support
