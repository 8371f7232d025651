// The collective operations of distributed training as messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/workload/builder.h"

namespace heddle::lab {

// What `bytes` means: the buffer of one rank for all-reduce, the gathered buffer for all-gather and the one to be
// scattered for reduce-scatter (the "size" of nccl-tests), the message to each other rank for all-to-all. Sizes that do
// not divide by the ranks are cut into chunks that differ by one byte at most; a chunk has at least one byte.
enum class CollectiveKind : uint8_t {
  kRingAllReduce,      // 2 (N - 1) steps of one chunk of bytes / N to the next rank; a rank sends in step s what it
                       // received in step s - 1 (P. Patarasuk, X. Yuan, J. Parallel Distrib. Comput. 69, 2009)
  kRingAllGather,      // its second half: N - 1 steps
  kRingReduceScatter,  // its first half: N - 1 steps
  kHalvingDoubling,    // all-reduce by recursive halving, then doubling: 2 log2 N steps with partners at distance N/2,
                     // …, 1, 1, …, N/2. Other N fold the ranks beyond the power of two into a neighbour before and
                     // after (R. Thakur, R. Rabenseifner, W. Gropp, Int. J. High Perform. Comput. Appl. 19, 2005)
  kAllToAll,           // every rank releases its N - 1 messages at once, nearest rank ahead first
  kStaggeredAllToAll,  // step k = 1 … N - 1: rank i sends to i + k, so that no two senders of a step share a receiver
};

struct Collective {
  CollectiveKind kind = CollectiveKind::kRingAllReduce;
  uint64_t bytes = 128'000'000;
  // Staggered all-to-all: how many steps a rank has under way. With d, step k waits until the rank has received the
  // message of step k - d and holds the last ACK of its own message of step k - 2 d. d = 1 is strictly one step after
  // another, but without an ACK's way back between steps: (N - 1) × (message time + one-way delay) on an ideal fabric.
  // A larger d pays the one-way delay in every d-th step only.
  uint32_t in_flight = 1;
};

// When a rank may begin: at a time, or some time after a barrier on its host.
struct RankBegin {
  std::optional<MessageId> gate;
  Time at = 0;  // with a gate: the delay after it
};

// Adds the messages of one collective to the builder's current job; `begin` holds one entry per rank. Returns for each
// rank the messages that it must have received for the collective to be over there. Throws bad input for fewer than 2
// ranks, or fewer bytes than there are chunks.
std::vector<std::vector<MessageId>> add_collective(WorkloadBuilder& builder, const std::vector<HostId>& hosts,
                                                   const Collective& collective, const std::vector<RankBegin>& begin);

// How many messages that makes, and in how many phases.
uint64_t collective_messages(uint32_t ranks, const Collective& collective);
uint32_t collective_phases(uint32_t ranks, const Collective& collective);

// Whether all ranks do the same in each phase and each phase ends before the next begins: not if ranks are folded, nor
// with several steps under way.
bool collective_runs_in_steps(uint32_t ranks, const Collective& collective);

// The names used in scenarios: "ring-all-reduce", "all-gather", "reduce-scatter", "halving-doubling", "all-to-all",
// "staggered-all-to-all". The second throws bad input that lists them.
std::string_view collective_name(CollectiveKind kind);
CollectiveKind find_collective(std::string_view name);

}  // namespace heddle::lab
