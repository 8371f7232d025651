#include "lab/engine/huge_pages.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <string>

#include <sys/mman.h>

namespace heddle::lab {

namespace {

constexpr uintptr_t kSmallPage = 4096;
constexpr int kCollapse = 25;  // MADV_COLLAPSE of Linux 6.1, which older headers do not have

// Whether all of it has been touched: what is collapsed else takes memory that nobody asked for.
bool is_resident(void* page) {
  std::array<unsigned char, kHugePage / kSmallPage> pages{};
  if (mincore(page, kHugePage, pages.data()) != 0) return false;
  return std::all_of(pages.begin(), pages.end(), [](unsigned char flags) { return (flags & 1U) != 0; });
}

}  // namespace

std::byte* allocate_huge(size_t bytes) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kHugePage, bytes));
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: without huge pages the run is only slower
  return memory;
}

size_t collapse_heap() {
  size_t bytes = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with("[heap]")) continue;
    size_t dash = 0;
    const uintptr_t begin = std::stoull(line, &dash, 16);
    const uintptr_t end = std::stoull(line.substr(dash + 1), nullptr, 16);
    for (uintptr_t at = (begin + kHugePage - 1) / kHugePage * kHugePage; at + kHugePage <= end; at += kHugePage) {
      void* page = reinterpret_cast<void*>(at);  // NOLINT(performance-no-int-to-ptr): as the kernel wrote it
      if (is_resident(page) && madvise(page, kHugePage, kCollapse) == 0) bytes += kHugePage;
    }
  }
  return bytes;
}

}  // namespace heddle::lab
