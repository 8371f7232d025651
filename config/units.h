// Numbers with units as people write them: read exactly, or not at all.
//
// `1.5ms` is 1 500 000 000 ps, computed in integers: decimal input never passes through floating point, and a value
// that is no whole number of picoseconds, bytes or bits per second, or that does not fit 64 bits, is refused rather
// than rounded. Every parse function takes the whole text (one space may stand before the unit) and returns nothing if
// it is not understood; the caller knows the place and the range and says what is accepted (config/yaml.h does). What
// print_* writes, parse_* reads back to the same value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/rate.h"
#include "net/time.h"

namespace heddle::config {

// A whole number in decimal, 0 … 2^64−1: digits only, no sign, no leading zeros.
std::optional<uint64_t> parse_integer(std::string_view text);

// `100G`, `25Gbps`, `2.5 Gbit/s`, `unlimited`. Prefixes k (or K), M, G, T are powers of 1000; a unit is required, since
// `rate: 100` would mean bits to some and gigabits to others. Zero is refused: it is what Rate calls unlimited.
std::optional<Rate> parse_rate(std::string_view text);
std::string print_rate(Rate rate);

// `1500` or `1500B` (bytes), `2MB` = 2·10^6, `2MiB` = 2·2^20; kB (or KB), MB, GB, TB, KiB, MiB, GiB, TiB.
std::optional<uint64_t> parse_bytes(std::string_view text);
std::string print_bytes(uint64_t bytes);

// `10ps`, `250ns`, `1us` (or `1µs`), `1.5ms`, `1s`; a plain `0` needs no unit.
std::optional<Duration> parse_duration(std::string_view text);
std::string print_duration(Duration duration);

// A share of a whole, 0 … 1: `5%` or `0.05`. The nearest double to what was written, at most 15 digits.
std::optional<double> parse_share(std::string_view text);
std::string print_share(double share);

// What the parse functions accept, for error texts.
inline constexpr std::string_view kRateForms = "a rate such as 100G, 25Gbps or unlimited";
inline constexpr std::string_view kBytesForms = "a size such as 1500, 64KiB or 2MB";
inline constexpr std::string_view kDurationForms = "a duration such as 250ns, 1.5ms or 1s";
inline constexpr std::string_view kShareForms = "a share from 0 to 1 such as 5% or 0.05";

}  // namespace heddle::config
