// What lies in huge pages stays as it is, whether it was moved there or allocated there.
#include "lab/engine/huge_pages.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace heddle::lab {
namespace {

// Bytes of the heap in huge pages, as the kernel counts them.
size_t huge_bytes_of_heap() {
  size_t bytes = 0;
  bool is_heap = false;
  std::ifstream smaps("/proc/self/smaps");
  for (std::string line; std::getline(smaps, line);) {
    if (line.find('-') < line.find(' ')) is_heap = line.ends_with("[heap]");  // the first line of a mapping
    constexpr std::string_view kField = "AnonHugePages:";
    if (is_heap && line.starts_with(kField)) bytes += std::stoull(line.substr(kField.size())) * 1024;
  }
  return bytes;
}

TEST(CollapseHeap, KeepsWhatItHoldsInHugePages) {
  constexpr size_t kWords = 500;  // small enough to lie in the heap
  std::vector<std::unique_ptr<uint64_t[]>> blocks;
  for (uint64_t i = 0; i < 4000; ++i) {  // 16 MB
    blocks.push_back(std::make_unique<uint64_t[]>(kWords));
    std::fill_n(blocks.back().get(), kWords, i * 3);
  }
  const size_t collapsed = collapse_heap();
  for (uint64_t i = 0; i < blocks.size(); ++i) {
    const uint64_t* words = blocks[i].get();
    ASSERT_TRUE(std::all_of(words, words + kWords, [i](uint64_t word) { return word == i * 3; })) << "block " << i;
  }
  // 0 where the kernel cannot, or where another allocator is in the place of the heap.
  EXPECT_GE(huge_bytes_of_heap(), collapsed);
  // What is there already can be asked for again.
  EXPECT_GE(collapse_heap(), collapsed);
}

TEST(HugePageAllocator, HoldsArraysOfAnySize) {
  struct alignas(128) Line {
    uint64_t number;
  };
  for (const size_t count : {1U, 100U, 16'384U, 50'000U}) {  // 16,384 lines are one huge page
    std::vector<Line, HugePageAllocator<Line>> lines;
    lines.reserve(count);
    for (size_t i = 0; i < count; ++i) lines.push_back({i});
    const auto begin = reinterpret_cast<uintptr_t>(lines.data());
    EXPECT_EQ(begin % (count * sizeof(Line) < kHugePage ? alignof(Line) : kHugePage), 0U);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(lines[i].number, i);
  }
}

}  // namespace
}  // namespace heddle::lab
