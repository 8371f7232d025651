// Captures of the lab's links: what passes a port, as whole frames.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lab/engine/fabric_settings.h"
#include "net/packet.h"
#include "net/time.h"
#include "telemetry/erf.h"
#include "telemetry/pcapng.h"

namespace heddle::lab {

// Frames that one direction of a link carried in the window, kept by the sending node until the engine writes them.
// Stamped with the time at which the last bit leaves the port.
class CaptureBuffer {
 public:
  struct Record {
    Time at;
    uint32_t frame_bytes;
    std::vector<uint8_t> headers;  // what the lab has of the frame; all of it, if it is no RoCE packet
  };

  void add(const Packet* packet, Time at);
  std::vector<Record>& records() { return records_; }

 private:
  std::vector<Record> records_;
};

// One port's file, with an interface for each direction as seen from the port: pcapng, or of InfiniBand links ERF where
// the file's name ends in .erf.
class Capture {
 public:
  // `delay` is the link's: the file shows when the last bit arrives at the port for what comes in.
  // On InfiniBand links pcapng leaves out flow-control packets: link type 247 cannot tell them from others. ERF can, if
  // they are those of the standard, and throws Error (bad input) for Ethernet.
  Capture(const std::string& file, const std::string& port_name, Duration delay,
          LinkLayer layer = LinkLayer::kEthernet);

  CaptureBuffer& outbound() { return out_; }
  CaptureBuffer& inbound() { return in_; }

  // Between windows: writes what happened before `until`, in order of time, sent before received at equal times.
  void write(Time until);

 private:
  struct Waiting {
    Time at;
    uint32_t interface;
    CaptureBuffer::Record record;
  };

  void write_frame(const Waiting& waiting);
  void seal_roce(const CaptureBuffer::Record& record);
  void seal_infiniband(const CaptureBuffer::Record& record);
  void put(const Waiting& waiting, telemetry::ErfType type);
  void open_erf(const std::string& file);

  std::unique_ptr<telemetry::PcapngWriter> pcapng_;  // or
  std::unique_ptr<telemetry::ErfWriter> erf_;
  Duration delay_;
  LinkLayer layer_;
  uint32_t out_interface_ = 0;
  uint32_t in_interface_ = 1;
  CaptureBuffer out_;
  CaptureBuffer in_;
  std::vector<Waiting> waiting_;
  std::vector<uint8_t> frame_;
};

}  // namespace heddle::lab
