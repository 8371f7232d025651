// Reads a classic libpcap file of Ethernet frames (microsecond or nanosecond stamps, either byte order).
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/frames.h"

namespace heddle::support {

// All frames of the file, in order. Throws std::runtime_error if it is no such file or ends in the middle of a frame.
inline std::vector<Bytes> read_pcap(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  const Bytes all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  constexpr size_t kFileHeader = 24;
  constexpr size_t kRecordHeader = 16;
  constexpr uint32_t kLinkTypeEthernet = 1;
  if (all.size() < kFileHeader) throw std::runtime_error(path + ": no pcap header");
  const bool little = all[0] == 0xd4 || all[0] == 0x4d;
  const auto word = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = (value << 8U) | all[at + (little ? 3 - i : i)];
    return value;
  };
  if (word(0) != 0xa1b2c3d4 && word(0) != 0xa1b23c4d) throw std::runtime_error(path + ": not a pcap file");
  if ((word(20) & 0xffffU) != kLinkTypeEthernet) throw std::runtime_error(path + ": link type is not Ethernet");
  std::vector<Bytes> frames;
  for (size_t at = kFileHeader; at < all.size();) {
    if (all.size() - at < kRecordHeader || all.size() - at - kRecordHeader < word(at + 8)) {
      throw std::runtime_error(path + ": ends in the middle of a frame");
    }
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at + kRecordHeader);
    frames.emplace_back(begin, begin + word(at + 8));
    at += kRecordHeader + word(at + 8);
  }
  return frames;
}

}  // namespace heddle::support
