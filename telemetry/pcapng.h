// Captures in pcapng (draft-ietf-opsawg-pcapng) with nanosecond stamps, as tshark and Wireshark read them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/time.h"

namespace heddle::telemetry {

enum class LinkType : uint16_t { kEthernet = 1, kInfiniband = 247 };

class PcapngWriter {
 public:
  // Creates `path`. Throws Error (failed) if that is impossible, now or at any later write.
  PcapngWriter(const std::string& path, const std::string& application);

  // Returns the interface's number, for `write`.
  uint32_t add_interface(const std::string& name, LinkType type);
  // One frame, whole, without FCS.
  void write(uint32_t interface, Time at, std::span<const uint8_t> frame);
  void flush();

 private:
  struct Closed {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  void block(uint32_t type, std::span<const uint8_t> body);

  std::string path_;
  std::unique_ptr<FILE, Closed> file_;
  uint32_t interfaces_ = 0;
  std::vector<uint8_t> body_;
};

}  // namespace heddle::telemetry
