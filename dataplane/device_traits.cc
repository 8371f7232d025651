#include "dataplane/device_traits.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>

namespace heddle::dataplane {

namespace {

constexpr std::array<DriverTraits, 7> kTraits{{
    {"net_af_packet", LinkSource::kNetlink, true, true, false, true,
     "frames the kernel drops before its ring are seen only in the interface's counters (drop reason kernel_ring)"},
    {"net_tap", LinkSource::kAlwaysUp, true, false, true, true,
     "frames above 1522 bytes do not fit through net_tap of DPDK 22.11"},
    {"net_pcap", LinkSource::kAlwaysUp, false, false, false, false, ""},
    {"net_ring", LinkSource::kAlwaysUp, false, false, false, false, ""},
    {"net_null", LinkSource::kAlwaysUp, false, false, false, false, ""},
    {"net_memif", LinkSource::kEthdev, false, false, false, false, ""},
    {"", LinkSource::kEthdev, true, false, false, true, ""},
}};

}  // namespace

const DriverTraits& traits_of(std::string_view driver) {
  for (const DriverTraits& traits : kTraits) {
    if (!traits.driver.empty() && traits.driver == driver) return traits;
  }
  return kTraits.back();
}

std::string devarg(std::string_view devargs, std::string_view key) {
  while (!devargs.empty()) {
    const size_t comma = devargs.find(',');
    const std::string_view item = devargs.substr(0, comma);
    const size_t equals = item.find('=');
    if (equals != std::string_view::npos && item.substr(0, equals) == key) return std::string(item.substr(equals + 1));
    if (comma == std::string_view::npos) break;
    devargs.remove_prefix(comma + 1);
  }
  return {};
}

std::string device_name(std::string_view devargs) { return std::string(devargs.substr(0, devargs.find(','))); }

uint32_t count_pcap_frames(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return 0;
  uint32_t header[6];  // magic, version, zone, accuracy, snap length, link type
  if (std::fread(header, sizeof header, 1, file.get()) != 1) return 0;
  const bool swapped = header[0] == 0xd4c3b2a1 || header[0] == 0x4d3cb2a1;
  uint32_t frames = 0;
  uint32_t record[4];  // seconds, fraction, captured, length
  while (std::fread(record, sizeof record, 1, file.get()) == 1) {
    const uint32_t captured = swapped ? __builtin_bswap32(record[2]) : record[2];
    if (std::fseek(file.get(), static_cast<long>(captured), SEEK_CUR) != 0) break;
    ++frames;
  }
  return frames;
}

}  // namespace heddle::dataplane
