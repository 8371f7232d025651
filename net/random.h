// Random numbers for the packet path and the lab: small, fast, seeded, the same on every machine.
#pragma once

#include <cstdint>

namespace heddle {

// One step of SplitMix64 (Steele, Lea, Flood 2014): turns any seed, also 0, 1, 2, …, into well-mixed bits.
constexpr uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111eb;
  return x ^ (x >> 31U);
}

// A stream of random numbers that belongs to one node, link or table, never to a thread (xoroshiro128++, Blackman and
// Vigna 2019). Copyable: a copy continues from the same place.
class Random {
 public:
  constexpr explicit Random(uint64_t seed) : a_(mix64(seed)), b_(mix64(seed ^ 0x6a09e667f3bcc909)) {}
  // The stream `index` of a family; streams of different index or seed are unrelated.
  constexpr Random(uint64_t seed, uint64_t index) : Random(mix64(seed) + 0x9e3779b97f4a7c15 * (index + 1)) {}

  constexpr uint64_t next() {
    const uint64_t a = a_;
    uint64_t b = b_;
    const uint64_t result = rotate(a + b, 17) + a;
    b ^= a;
    a_ = rotate(a, 49) ^ b ^ (b << 21U);
    b_ = rotate(b, 28);
    return result;
  }

  // Uniform in [0, n), n ≥ 1, by multiply-shift: no division, bias below n / 2^32.
  constexpr uint32_t below(uint32_t n) { return static_cast<uint32_t>(((next() >> 32U) * n) >> 32U); }

  // Uniform in [0, 1).
  constexpr double uniform() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }

 private:
  static constexpr uint64_t rotate(uint64_t x, unsigned k) { return (x << k) | (x >> (64 - k)); }

  uint64_t a_;
  uint64_t b_;
};

}  // namespace heddle
