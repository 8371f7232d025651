// What a node of the lab is to the engine, and what the engine lends it for a window.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lab/packet_arena.h"
#include "lab/workload.h"
#include "net/drop_reason.h"
#include "net/time.h"

namespace heddle::lab {

// An effect of one host's message on another host's, to be delivered between windows.
struct RemoteTrigger {
  HostId host = 0;
  MessageId message = 0;
  Time at = 0;
};

// One window of virtual time, [begin, end), for one thread.
struct Window {
  Time begin = 0;
  Time end = 0;
  unsigned parity = 0;                    // which outbox of a wire is being written
  PacketArena::Cache* packets = nullptr;  // of this thread
};

// Packets a node made an end of, by reason.
using DropCounts = std::array<uint64_t, kDropReasons>;

class LiveNode {
 public:
  virtual ~LiveNode() = default;

  // Handles everything of this node in the window, in time order; at equal times arrivals (by port, then order of
  // sending), then timers, then departures.
  virtual void run(const Window& window) = 0;

  // A node is touched once a window, its memory is cold by then. Called while others before it run: first `approach`,
  // which asks for the node's own tables, then `prepare`, which follows them.
  virtual void approach() const {}
  virtual void prepare() const {}

  // Between windows. The earliest of: something this node will do by itself, a packet on its way to it that it knows
  // of, a packet it has just sent. kNever if there is nothing.
  virtual Time next_event() const = 0;
  // Packets that wait in this node.
  virtual uint64_t packets_held() const = 0;
  virtual const DropCounts& drops() const = 0;
};

}  // namespace heddle::lab
