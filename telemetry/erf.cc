#include "telemetry/erf.h"

#include <cerrno>
#include <cstring>

#include "net/error.h"
#include "net/headers.h"

namespace heddle::telemetry {

namespace {

struct Record {
  uint64_t time;  // seconds since 1970 in the upper half, the fraction of one in the lower; little-endian
  uint8_t type;
  uint8_t flags;         // interface 2, varying length 1, …
  net::Be16 length;      // of the record
  net::Be16 lost;        // packets before it
  net::Be16 wire_bytes;  // of the packet
};
static_assert(sizeof(Record) == 16);

constexpr uint8_t kVaryingLength = 4;

// Rounded up, so that a nanosecond stays one when Wireshark cuts off.
uint64_t fixed_point(Time at) {
  __extension__ using Uint128 = unsigned __int128;
  const Uint128 part = static_cast<Uint128>(at % kSecond) << 32U;
  return (at / kSecond) << 32U | static_cast<uint64_t>((part + kSecond - 1) / kSecond);
}

}  // namespace

ErfWriter::ErfWriter(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "wb")) {
  if (!file_) throw_failed("cannot write capture {}: {}", path, std::strerror(errno));
}

void ErfWriter::write(unsigned interface, Time at, ErfType type, std::span<const uint8_t> packet) {
  Record record{};
  record.time = fixed_point(at);
  record.type = static_cast<uint8_t>(type);
  record.flags = static_cast<uint8_t>((interface & 3U) | kVaryingLength);
  record.length = static_cast<uint16_t>(sizeof record + packet.size());
  record.wire_bytes = static_cast<uint16_t>(packet.size());
  const bool written = std::fwrite(&record, sizeof record, 1, file_.get()) == 1 &&
                       std::fwrite(packet.data(), 1, packet.size(), file_.get()) == packet.size();
  if (!written) throw_failed("cannot write capture {}: {}", path_, std::strerror(errno));
}

void ErfWriter::flush() {
  if (std::fflush(file_.get()) != 0) throw_failed("cannot write capture {}: {}", path_, std::strerror(errno));
}

}  // namespace heddle::telemetry
