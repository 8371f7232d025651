// Captures of the lab's links: what passes a port, as whole frames.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/engine/fabric_settings.h"
#include "net/packet.h"
#include "net/time.h"
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

// One port's file, with an interface for each direction as seen from the port.
class Capture {
 public:
  // `delay` is the link's: the file shows when the last bit arrives at the port for what comes in.
  // On InfiniBand links flow-control packets are left out: link type 247 cannot tell them from others.
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

  telemetry::PcapngWriter file_;
  Duration delay_;
  LinkLayer layer_;
  uint32_t out_interface_;
  uint32_t in_interface_;
  CaptureBuffer out_;
  CaptureBuffer in_;
  std::vector<Waiting> waiting_;
  std::vector<uint8_t> frame_;
};

}  // namespace heddle::lab
