#include "telemetry/pcapng.h"

#include <cerrno>
#include <cstring>

#include "net/error.h"

namespace heddle::telemetry {

namespace {

constexpr uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr uint32_t kInterfaceDescription = 1;
constexpr uint32_t kEnhancedPacket = 6;
constexpr uint16_t kOptionEnd = 0;
constexpr uint16_t kOptionApplication = 4;  // shb_userappl
constexpr uint16_t kOptionName = 2;         // if_name
constexpr uint16_t kOptionResolution = 9;   // if_tsresol

template <typename Int>
void append(std::vector<uint8_t>& out, Int value) {
  out.resize(out.size() + sizeof value);
  std::memcpy(out.data() + out.size() - sizeof value, &value, sizeof value);
}

void append_padded(std::vector<uint8_t>& out, std::span<const uint8_t> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
  out.resize((out.size() + 3) / 4 * 4);
}

void append_option(std::vector<uint8_t>& out, uint16_t code, std::span<const uint8_t> value) {
  append(out, code);
  append(out, static_cast<uint16_t>(value.size()));
  append_padded(out, value);
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

PcapngWriter::PcapngWriter(const std::string& path, const std::string& application)
    : path_(path), file_(std::fopen(path.c_str(), "wb")) {
  if (!file_) throw_failed("cannot write capture {}: {}", path, std::strerror(errno));
  body_.clear();
  append(body_, uint32_t{0x1a2b3c4d});  // byte order
  append(body_, uint16_t{1});           // version 1.0
  append(body_, uint16_t{0});
  append(body_, int64_t{-1});  // section length unknown
  append_option(body_, kOptionApplication, bytes_of(application));
  append_option(body_, kOptionEnd, {});
  block(kSectionHeader, body_);
}

uint32_t PcapngWriter::add_interface(const std::string& name, LinkType type) {
  body_.clear();
  append(body_, static_cast<uint16_t>(type));
  append(body_, uint16_t{0});
  append(body_, uint32_t{0});  // no snap length
  append_option(body_, kOptionName, bytes_of(name));
  const uint8_t nanoseconds = 9;
  append_option(body_, kOptionResolution, {&nanoseconds, 1});
  append_option(body_, kOptionEnd, {});
  block(kInterfaceDescription, body_);
  return interfaces_++;
}

void PcapngWriter::write(uint32_t interface, Time at, std::span<const uint8_t> frame) {
  const uint64_t ns = at / kNanosecond;
  body_.clear();
  append(body_, interface);
  append(body_, static_cast<uint32_t>(ns >> 32U));
  append(body_, static_cast<uint32_t>(ns));
  append(body_, static_cast<uint32_t>(frame.size()));
  append(body_, static_cast<uint32_t>(frame.size()));
  append_padded(body_, frame);
  block(kEnhancedPacket, body_);
}

void PcapngWriter::flush() {
  if (std::fflush(file_.get()) != 0) throw_failed("cannot write capture {}: {}", path_, std::strerror(errno));
}

void PcapngWriter::block(uint32_t type, std::span<const uint8_t> body) {
  const auto length = static_cast<uint32_t>(body.size() + 12);
  const bool written = std::fwrite(&type, 4, 1, file_.get()) == 1 && std::fwrite(&length, 4, 1, file_.get()) == 1 &&
                       std::fwrite(body.data(), 1, body.size(), file_.get()) == body.size() &&
                       std::fwrite(&length, 4, 1, file_.get()) == 1;
  if (!written) throw_failed("cannot write capture {}: {}", path_, std::strerror(errno));
}

}  // namespace heddle::telemetry
