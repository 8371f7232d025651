// What a pipeline is told when it is made.
#pragma once

#include <optional>
#include <vector>

#include "dataplane/classify.h"
#include "dataplane/egress_scheduler.h"
#include "dataplane/lanes.h"
#include "dataplane/shared_buffer.h"
#include "flowctl/pfc.h"
#include "flowctl/pfc_watchdog.h"
#include "lb/path_selector.h"
#include "lb/resequencer.h"
#include "net/packet.h"

namespace heddle::dataplane {

// Routes that no table has: packets that end here, and answers to requests, made of them (responder.h).
inline constexpr uint32_t kHereRoute = ~0U;
inline constexpr uint32_t kAnswerRoute = ~0U - 1;

// Priority-based flow control by frames of our own, or by the NIC.
struct PfcSettings {
  uint8_t classes = 0;  // bit = class that is paused when asked and whose sender is paused at XOFF; 0 = no PFC here
  uint8_t by_nic = 0;   // bit = class that the NIC pauses and obeys: above XOFF its receive queue is closed (`closed`)
  uint16_t quanta = flowctl::kMaxQuanta;  // asked for each time
  Rate link;                              // what quanta are measured in; not unlimited
  net::Mac source{};                      // of the frames we send
  // Of every class above: finds a queue that pauses have stopped for good; nothing: nobody looks.
  std::optional<flowctl::WatchdogSettings> watchdog{};
};

struct PortSettings {
  IngressPort ingress;
  EgressSettings egress;
  PfcSettings pfc;
  bool resequence =
      false;  // a host is behind it: packets of a queue pair leave in order (PipelineSettings::resequencer)
  uint32_t max_frame = 1518;  // longest frame it can send, without FCS
};

// What a pipeline is made with.
struct PipelineSettings {
  std::vector<PortSettings> ports;
  std::vector<bool> mine;  // ports this pipeline owns; empty = all
  lb::HashSettings hash;
  uint64_t seed = 1;  // of random choices
  lb::ArsSettings ars;
  bool flowlets = true;            // whether a scheduler may go by flowlets: their table is made at once
  bool flowlets_resident = false;  // and its memory touched
  size_t paths = 0;                // size of the path counters
  lb::ResequencerSettings resequencer;
  BufferSettings buffer;
  std::vector<BufferLedger*> ledgers;  // of all lcores that share the buffer; empty if it is ours alone
  unsigned self = 0;                   // our place among them
  std::optional<LaneSettings> lanes;   // InfiniBand links; nothing: Ethernet
};

}  // namespace heddle::dataplane
