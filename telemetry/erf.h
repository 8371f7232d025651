// Captures as files of extensible records (ERF, Endace), which Wireshark has dissected InfiniBand from for longer than
// it has known link type 247, and in which flow-control packets have a type of their own.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "net/time.h"

namespace heddle::telemetry {

enum class ErfType : uint8_t { kInfiniband = 21, kInfinibandLink = 25 };

class ErfWriter {
 public:
  // Creates `path`. Throws Error (failed) if that is impossible, now or at any later write.
  explicit ErfWriter(const std::string& path);

  // One packet, from its first header to its last CRC, of interface 0–3.
  void write(unsigned interface, Time at, ErfType type, std::span<const uint8_t> packet);
  void flush();

 private:
  struct Closed {
    void operator()(FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<FILE, Closed> file_;
};

}  // namespace heddle::telemetry
