// What a node of the lab is to the engine, and what the engine lends it for a window.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "lab/engine/packet_arena.h"
#include "lab/engine/port_set.h"
#include "lab/engine/time_order.h"
#include "lab/engine/wire.h"
#include "lab/workload/workload.h"
#include "net/drop_reason.h"
#include "net/time.h"

namespace heddle::lab {

// An effect of one host's message on another host's, to be delivered between windows.
struct RemoteTrigger {
  HostId host = 0;
  MessageId message = 0;
  Time at = 0;
};

// What a node works with during a window: its thread's, so that it stays in the cache from node to node.
struct Scratch {
  std::vector<Flight> flights;    // that arrive at a host
  std::vector<Arrival> arrivals;  // at a switch, in order
  TimeOrder time_order;
};

// One window of virtual time, [begin, end), for one thread.
struct Window {
  Time begin = 0;
  Time end = 0;
  unsigned parity = 0;                    // which outbox of a wire is being written
  PacketArena::Cache* packets = nullptr;  // of this thread
  Time* first_sent = nullptr;             // arrival of the first packet sent in the window by nodes of this thread
  Scratch* scratch = nullptr;             // of this thread

  // A packet is on its way that will arrive at `at`.
  void note_sent(Time at) const { *first_sent = std::min(*first_sent, at); }
};

// Packets a node made an end of, by reason.
using DropCounts = std::array<uint64_t, kDropReasons>;

class LiveNode {
 public:
  virtual ~LiveNode() = default;

  // Handles everything of this node in the window, in time order; at equal times arrivals (by port, then order of
  // sending), then timers, then departures.
  virtual void run(const Window& window) = 0;

  // A node is touched once a window, its memory is cold by then. Called while others before it run, each following what
  // the one before has asked for: the node's own tables; its wires and queues that have something to do; their packets.
  virtual void fetch_tables() const {}
  virtual void fetch_ports(const Window& /*window*/) const {}
  virtual void fetch_packets(const Window& /*window*/) const {}

  // Between windows. The earlier of: something this node will do by itself, a packet on its way to it that it has
  // collected. kNever if there is nothing. What was sent to it since its last window shows in its inbox.
  virtual Time next_event() const = 0;
  const Inbox& inbox() const { return inbox_; }
  Inbox& inbox() { return inbox_; }
  // Packets that wait in this node.
  virtual uint64_t packets_held() const = 0;
  virtual const DropCounts& drops() const = 0;
  // When a link that was down or lossy, or the want of a route, last cost a packet here; kNever: it never did.
  Time last_loss() const { return last_loss_; }

 protected:
  explicit LiveNode(size_t ports) : inbox_(ports) {}

  void note_loss(Time now) { last_loss_ = now; }

  Inbox inbox_;

 private:
  Time last_loss_ = ~Time{0};
};

}  // namespace heddle::lab
