// Asking for more than one cache line at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include <rte_prefetch.h>

namespace heddle {

// Asks for the lines of `count` values, for every level of the cache; of an array that begins within a line perhaps not
// for the last.
template <typename T>
void prefetch_all(const T* values, size_t count = 1) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values);
  for (size_t at = 0; at < count * sizeof(T); at += RTE_CACHE_LINE_MIN_SIZE) rte_prefetch0(bytes + at);
}

// The same for all from the one to the other, which are needed later: they come as near as the second level's cache.
inline void prefetch_for_later(const void* from, const void* to) {
  const auto* first = static_cast<const std::byte*>(from);
  const auto* end = static_cast<const std::byte*>(to);
  for (first -= reinterpret_cast<uintptr_t>(first) % RTE_CACHE_LINE_MIN_SIZE; first < end;
       first += RTE_CACHE_LINE_MIN_SIZE) {
    rte_prefetch1(first);
  }
}

}  // namespace heddle
