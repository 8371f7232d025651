// Goodness of fit for distribution tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle::support {

// P(X ≥ x) of the chi-square distribution with `degrees` ≥ 1 degrees of freedom.
double chi_square_tail(double x, double degrees);

// p-value of Pearson's test that `counts` were drawn with equal probability. One cell: 1.
double uniform_p_value(std::span<const uint64_t> counts);

// p-value of Pearson's test that row and column of a contingency table (row by row) are independent.
double independence_p_value(std::span<const uint64_t> table, size_t columns);

// The largest |count − mean| in standard deviations of one cell's binomial count. One cell: 0.
double largest_deviation(std::span<const uint64_t> counts);

// ---------------------------------------------------------------------------------------------------------------------

// Regularised upper incomplete gamma function Q(a, x): by the power series of its complement below a + 1, by the
// continued fraction (modified Lentz) above (Abramowitz and Stegun 6.5.29 and 6.5.31).
inline double upper_gamma(double a, double x) {
  if (x <= 0) return 1;
  const double scale = std::exp(a * std::log(x) - x - std::lgamma(a));
  constexpr int kTerms = 100'000;
  constexpr double kEnough = 1e-13;
  if (x < a + 1) {
    double term = 1 / a;
    double sum = term;
    for (int k = 1; k < kTerms && term > sum * kEnough; ++k) {
      term *= x / (a + k);
      sum += term;
    }
    return 1 - scale * sum;
  }
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a;
  double c = 1 / kTiny;
  double d = 1 / b;
  double fraction = d;
  for (int k = 1; k < kTerms; ++k) {
    const double numerator = -k * (k - a);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    if (std::fabs(d) < kTiny) d = kTiny;
    if (std::fabs(c) < kTiny) c = kTiny;
    d = 1 / d;
    fraction *= d * c;
    if (std::fabs(d * c - 1) < kEnough) break;
  }
  return scale * fraction;
}

inline double chi_square_tail(double x, double degrees) { return upper_gamma(degrees / 2, x / 2); }

inline double sum_of(std::span<const uint64_t> counts) {
  double sum = 0;
  for (const uint64_t count : counts) sum += static_cast<double>(count);
  return sum;
}

inline double uniform_p_value(std::span<const uint64_t> counts) {
  if (counts.size() < 2) return 1;
  const double expected = sum_of(counts) / static_cast<double>(counts.size());
  double x = 0;
  for (const uint64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    x += off * off / expected;
  }
  return chi_square_tail(x, static_cast<double>(counts.size() - 1));
}

inline double independence_p_value(std::span<const uint64_t> table, size_t columns) {
  const size_t rows = table.size() / columns;
  std::vector<double> of_row(rows);
  std::vector<double> of_column(columns);
  for (size_t i = 0; i < table.size(); ++i) {
    of_row[i / columns] += static_cast<double>(table[i]);
    of_column[i % columns] += static_cast<double>(table[i]);
  }
  const double all = sum_of(table);
  double x = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    const double expected = of_row[i / columns] * of_column[i % columns] / all;
    const double off = static_cast<double>(table[i]) - expected;
    x += off * off / expected;
  }
  return chi_square_tail(x, static_cast<double>((rows - 1) * (columns - 1)));
}

inline double largest_deviation(std::span<const uint64_t> counts) {
  if (counts.size() < 2) return 0;
  const double all = sum_of(counts);
  const double share = 1 / static_cast<double>(counts.size());
  const double sigma = std::sqrt(all * share * (1 - share));
  double worst = 0;
  for (const uint64_t count : counts) {
    worst = std::fmax(worst, std::fabs(static_cast<double>(count) - all * share) / sigma);
  }
  return worst;
}

}  // namespace heddle::support
