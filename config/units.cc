#include "config/units.h"

#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace heddle::config {
namespace {

__extension__ using Wide = unsigned __int128;

struct Unit {
  std::string_view name;
  uint64_t scale;
};

// Largest first, and of equal ones the spelling that is printed first.
constexpr std::array kRateUnits{
    Unit{"T", 1'000'000'000'000},
    Unit{"G", 1'000'000'000},
    Unit{"M", 1'000'000},
    Unit{"k", 1'000},
    Unit{"K", 1'000},
    Unit{"", 1},
};
constexpr std::array kRateSuffixes{"bps", "bit/s", "b/s", "bit"};
constexpr std::array kDecimalByteUnits{
    Unit{"TB", 1'000'000'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"MB", 1'000'000},
    Unit{"kB", 1'000},
    Unit{"KB", 1'000},
    Unit{"B", 1},
};
constexpr std::array kBinaryByteUnits{Unit{"TiB", 1ULL << 40U}, Unit{"GiB", 1ULL << 30U}, Unit{"MiB", 1ULL << 20U},
                                      Unit{"KiB", 1ULL << 10U}};
constexpr std::array kDurationUnits{
    Unit{"s", kSecond},       Unit{"ms", kMillisecond}, Unit{"us", kMicrosecond},
    Unit{"µs", kMicrosecond}, Unit{"ns", kNanosecond},  Unit{"ps", kPicosecond},
};

// digits / 10^decimals, followed by `unit`.
struct Number {
  uint64_t digits = 0;
  unsigned decimals = 0;
  std::string_view unit;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads `12`, `12.5`, `0.5`; not `.5`, `5.`, `007`, `1e3`, signs. More than 19 significant digits do not fit.
std::optional<Number> read_number(std::string_view text) {
  constexpr size_t max_digits = 19;
  size_t whole = 0;
  while (whole < text.size() && is_digit(text[whole])) ++whole;
  if (whole == 0 || (whole > 1 && text[0] == '0')) return std::nullopt;
  size_t end = whole;
  std::string digits(text.substr(0, whole));
  size_t decimals = 0;
  if (end < text.size() && text[end] == '.') {
    size_t stop = end + 1;
    while (stop < text.size() && is_digit(text[stop])) ++stop;
    std::string_view fraction = text.substr(end + 1, stop - end - 1);
    if (fraction.empty()) return std::nullopt;
    while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
    digits += fraction;
    decimals = fraction.size();
    end = stop;
  }
  if (digits.size() > max_digits) return std::nullopt;
  Number number;
  std::from_chars(digits.data(), digits.data() + digits.size(), number.digits);
  number.decimals = static_cast<unsigned>(decimals);
  number.unit = text.substr(end);
  if (number.unit.size() > 1 && number.unit.front() == ' ') number.unit.remove_prefix(1);
  return number;
}

uint64_t power_of_ten(unsigned exponent) {
  uint64_t power = 1;
  while (exponent-- > 0) power *= 10;
  return power;
}

// number × scale if that is whole and fits 64 bits.
std::optional<uint64_t> scaled(const Number& number, uint64_t scale) {
  const Wide product = static_cast<Wide>(number.digits) * scale;
  const uint64_t divisor = power_of_ten(number.decimals);
  if (product % divisor != 0 || product / divisor > std::numeric_limits<uint64_t>::max()) return std::nullopt;
  return static_cast<uint64_t>(product / divisor);
}

template <size_t kCount>
std::optional<uint64_t> scaled_by_name(const Number& number, const std::array<Unit, kCount>& units) {
  for (const Unit& unit : units) {
    if (unit.name == number.unit) return scaled(number, unit.scale);
  }
  return std::nullopt;
}

// The value in its largest unit, with as many decimals as it takes to be exact.
template <size_t kCount>
std::string print_in(uint64_t value, const std::array<Unit, kCount>& units, std::string_view zero) {
  for (const Unit& unit : units) {
    if (value < unit.scale) continue;
    std::string text = fmt::format("{}", value / unit.scale);
    if (uint64_t rest = value % unit.scale; rest != 0) {
      text += '.';
      for (uint64_t place = unit.scale / 10; rest != 0; place /= 10) {
        text += static_cast<char>('0' + rest / place);
        rest %= place;
      }
    }
    return text.append(unit.name);
  }
  return std::string(zero);
}

}  // namespace

std::optional<uint64_t> parse_integer(std::string_view text) {
  if (text.empty() || !is_digit(text[0]) || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Rate> parse_rate(std::string_view text) {
  if (text == "unlimited") return Rate::unlimited();
  auto number = read_number(text);
  if (!number || number->unit.empty()) return std::nullopt;
  for (const std::string_view suffix : kRateSuffixes) {
    if (number->unit.ends_with(suffix)) {
      number->unit.remove_suffix(suffix.size());
      break;
    }
  }
  const auto bits_per_second = scaled_by_name(*number, kRateUnits);
  if (!bits_per_second || *bits_per_second == 0) return std::nullopt;
  return Rate(*bits_per_second);
}

std::string print_rate(Rate rate) {
  if (rate.is_unlimited()) return "unlimited";
  std::string text = print_in(rate.bits_per_second(), kRateUnits, "");
  return is_digit(text.back()) ? text + "bps" : text;
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
  const auto number = read_number(text);
  if (!number) return std::nullopt;
  if (number->unit.empty()) return scaled(*number, 1);
  const auto bytes = scaled_by_name(*number, kDecimalByteUnits);
  return bytes ? bytes : scaled_by_name(*number, kBinaryByteUnits);
}

std::string print_bytes(uint64_t bytes) {
  std::string text = print_in(bytes, kDecimalByteUnits, "0B");
  const auto prefer_shorter = [&text](std::string other) {
    if (other.size() < text.size()) text = std::move(other);
  };
  for (const Unit& unit : kBinaryByteUnits) {
    if (bytes % unit.scale == 0) prefer_shorter(fmt::format("{}{}", bytes / unit.scale, unit.name));
  }
  prefer_shorter(fmt::format("{}B", bytes));
  return text;
}

std::optional<Duration> parse_duration(std::string_view text) {
  const auto number = read_number(text);
  if (!number) return std::nullopt;
  if (number->unit.empty() && number->digits == 0) return 0;
  return scaled_by_name(*number, kDurationUnits);
}

std::string print_duration(Duration duration) { return print_in(duration, kDurationUnits, "0s"); }

std::optional<double> parse_share(std::string_view text) {
  auto number = read_number(text);
  if (!number || (!number->unit.empty() && number->unit != "%")) return std::nullopt;
  const unsigned decimals = number->decimals + (number->unit.empty() ? 0 : 2);
  // Below 2^53 and 10^22 both operands are exact doubles, so that the division rounds once, to the nearest.
  constexpr uint64_t exact = 1'000'000'000'000'000;
  if (number->digits >= exact || decimals > 19 || number->digits > power_of_ten(decimals)) return std::nullopt;
  return static_cast<double>(number->digits) / static_cast<double>(power_of_ten(decimals));
}

std::string print_share(double share) { return fmt::format("{}", share); }

}  // namespace heddle::config
