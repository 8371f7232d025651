// What an InfiniBand switch tells its neighbours when it has lost its last way to a destination, and what it makes of
// what they tell it: they take other members of their groups, long before a subnet manager has swept.
//
// A destination can be reached from here if a member of its group is alive whose neighbour has not said otherwise. Who
// loses or regains one tells all neighbouring switches at once, in packets of VL15 (net/management.h). Groups lead
// nearer to the destination with every hop, so that what is told comes to an end. New tables begin anew: what was said
// of older ones is forgotten, and what still arrives of it is not listened to.
//
// VL15 has no credits, and a notice may be lost: on a bad link, or where its buffer is full. A trap is repeated until
// its receiver represses it (IBTA 13.4.9, TrapRepress). Here whoever has told something says a few times more how it
// stands with all that it has spoken of: that needs no state for each neighbour, hearing it again changes nothing, and
// what is lost every time is healed by the next sweep, as a switch that says nothing is.
#pragma once

#include <cstdint>
#include <vector>

#include "net/management.h"
#include "net/packet.h"

namespace heddle::dataplane {

struct ForwardingTables;
class PortStates;

struct ReachSettings {
  bool notify = false;      // off: neighbours hear nothing
  uint16_t lid = 0;         // of this switch
  uint32_t buffer = 4096;   // bytes of VL15's egress buffer at each port; management packets beyond are dropped
  unsigned repeats = 0;     // how often what was told last is told again
  std::vector<bool> peers;  // by port: whether another switch is behind it; empty: none
};

// Bits by LID; none set where it has never been written.
class LidSet {
 public:
  bool has(uint32_t lid) const { return lid / 64 < words_.size() && ((words_[lid / 64] >> (lid % 64)) & 1U) != 0; }
  void set(uint32_t lid, bool on) {
    if (lid / 64 >= words_.size()) words_.resize(lid / 64 + 1);
    const uint64_t bit = uint64_t{1} << (lid % 64);
    words_[lid / 64] = on ? words_[lid / 64] | bit : words_[lid / 64] & ~bit;
  }
  void clear() { words_.clear(); }
  bool empty() const { return words_.empty(); }

 private:
  std::vector<uint64_t> words_;
};

class Reach {
 public:
  Reach(ReachSettings settings, size_t ports) : settings_(std::move(settings)), lost_(ports) {}

  bool notifies() const { return settings_.notify; }
  bool is_peer(PortId port) const { return port < settings_.peers.size() && settings_.peers[port]; }
  uint16_t lid() const { return settings_.lid; }

  // Other tables are in force.
  void begin_sweep();
  // The link has come up: what was heard by it before no longer counts.
  void forget(PortId port) { lost_[port].clear(); }

  // Whether a neighbour has said anything; then `is_usable` must be asked.
  bool has_losses() const { return any_lost_; }
  // Whether the neighbour behind the port has not said that it cannot reach that destination.
  bool is_usable(PortId port, uint32_t lid) const { return !lost_[port].has(lid); }

  // What a neighbour says. False: it speaks of other tables.
  bool hear(PortId from, const net::ReachNotice& notice);
  // Looks at destinations again, all of them or those of a notice that was heard; what has changed since we last told
  // is in `changes`, ready to be sent.
  void review(const ForwardingTables& tables, const PortStates& ports);
  void review(const ForwardingTables& tables, const PortStates& ports, const net::ReachNotice& heard);
  // Notices that have not been sent. The caller empties it.
  std::vector<net::ReachNotice>& changes() { return changes_; }
  // Whether something is to be told again: its owner, who has the time, calls `repeat` after each interval.
  bool has_repeats() const { return repeats_left_ != 0; }
  // All that was spoken of under these tables, as it is now, into `changes`.
  void repeat(const ForwardingTables& tables);
  // All that cannot be reached now, for a neighbour that knows nothing yet.
  std::vector<net::ReachNotice> all_losses(const ForwardingTables& tables) const;
  uint32_t next_number() { return number_++; }

 private:
  bool reaches(const ForwardingTables& tables, const PortStates& ports, uint32_t lid) const;
  void look_at(const ForwardingTables& tables, const PortStates& ports, uint32_t from, uint32_t end);
  void add(std::vector<net::ReachNotice>& to, uint32_t lid, bool restored) const;

  ReachSettings settings_;
  std::vector<LidSet> lost_;  // by port: what the neighbour cannot reach
  bool any_lost_ = false;
  LidSet told_;    // what we have said that we cannot
  LidSet spoken_;  // what we have said anything of
  unsigned repeats_left_ = 0;
  uint16_t sweep_ = 0;
  uint32_t number_ = 0;
  std::vector<net::ReachNotice> changes_;
};

}  // namespace heddle::dataplane
