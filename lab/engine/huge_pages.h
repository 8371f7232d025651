// Huge pages for what a fabric is made of: with pages of 4 KiB a run of thousands of hosts finds the address of nearly
// every line that it fetches in memory first.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace heddle::lab {

inline constexpr size_t kHugePage = 2U << 20U;

// Memory whose pages will be huge ones where the system lets them, for `free`; a whole number of huge pages. Throws
// std::bad_alloc.
std::byte* allocate_huge(size_t bytes);

// Of arrays that may fill huge pages; small ones lie anywhere.
template <typename T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <typename Other>
  HugePageAllocator(const HugePageAllocator<Other>& /*other*/) {}  // NOLINT(google-explicit-constructor): as it must be

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes >= kHugePage) return reinterpret_cast<T*>(allocate_huge((bytes + kHugePage - 1) / kHugePage * kHugePage));
    void* memory = std::aligned_alloc(alignof(T), bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* array, size_t /*count*/) { std::free(array); }
  friend bool operator==(const HugePageAllocator&, const HugePageAllocator&) { return true; }
};

// Has the heap (the process's first, which brk extends) moved into huge pages, as far as the system lets it: kernels
// before Linux 6.1 do not know MADV_COLLAPSE, and then nothing changes. Returns how many bytes the kernel was asked for
// with success.
size_t collapse_heap();

}  // namespace heddle::lab
