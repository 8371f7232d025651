// Time as every stage of the packet path sees it: picoseconds on one clock, passed in as `now`.
#pragma once

#include <cstdint>

namespace heddle {

// Picoseconds since the clock of the run began: the TSC of a real switch (rescaled once per burst) or the lab's virtual
// clock. One bit time at 1600G is 0.625 ps, so a byte (5 ps) is still exact. Wraps after 213 days; a real switch runs
// longer than that, so differences are taken with `elapsed` and order with `before`, which hold across the wrap.
using Time = uint64_t;
using Duration = uint64_t;  // picoseconds

inline constexpr Duration kPicosecond = 1;
inline constexpr Duration kNanosecond = 1000;
inline constexpr Duration kMicrosecond = 1000 * kNanosecond;
inline constexpr Duration kMillisecond = 1000 * kMicrosecond;
inline constexpr Duration kSecond = 1000 * kMillisecond;

// True if `a` comes before `b`. Both must lie within 106 days of each other.
constexpr bool before(Time a, Time b) { return static_cast<int64_t>(a - b) < 0; }

// How far `now` is past `then`; 0 if `then` still lies ahead.
constexpr Duration elapsed(Time now, Time then) { return before(now, then) ? 0 : now - then; }

constexpr Time later_of(Time a, Time b) { return before(a, b) ? b : a; }

constexpr double to_microseconds(Duration d) { return static_cast<double>(d) / 1e6; }
constexpr double to_seconds(Duration d) { return static_cast<double>(d) / 1e12; }

}  // namespace heddle
