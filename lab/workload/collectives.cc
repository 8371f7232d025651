#include "lab/workload/collectives.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "net/error.h"

namespace heddle::lab {
namespace {

// One collective under construction.
class Construction {
 public:
  Construction(WorkloadBuilder& builder, const std::vector<HostId>& hosts, const std::vector<RankBegin>& begin)
      : builder_(builder), hosts_(hosts), begin_(begin), due_(hosts.size()) {}

  uint32_t ranks() const { return static_cast<uint32_t>(hosts_.size()); }

  // `from` sends once it has begun and the causes have happened. Later messages that wait for one of these need not
  // wait for the begin again: `send_later`.
  MessageId send(uint32_t from, uint32_t to, uint64_t bytes, const std::vector<Cause>& causes = {}) {
    const RankBegin& begin = begin_[from];
    const bool at_a_time = !begin.gate && causes.empty();
    const MessageId m = builder_.add_message(hosts_[from], hosts_[to], bytes, at_a_time ? begin.at : 0);
    if (begin.gate) builder_.add_trigger({*begin.gate, TriggerOn::kReceived}, m, begin.at);
    for (const Cause& cause : causes) builder_.add_trigger(cause, m);
    return m;
  }

  MessageId send_later(uint32_t from, uint32_t to, uint64_t bytes, const std::vector<Cause>& causes) {
    const MessageId m = builder_.add_message(hosts_[from], hosts_[to], bytes);
    for (const Cause& cause : causes) builder_.add_trigger(cause, m);
    return m;
  }

  // The collective is not over at `rank` before it has received `m`.
  void note_due(uint32_t rank, MessageId m) { due_[rank].push_back(m); }
  std::vector<std::vector<MessageId>> take_due() { return std::move(due_); }

 private:
  WorkloadBuilder& builder_;
  const std::vector<HostId>& hosts_;
  const std::vector<RankBegin>& begin_;
  std::vector<std::vector<MessageId>> due_;
};

uint32_t ring_steps(uint32_t n, CollectiveKind kind) {
  return kind == CollectiveKind::kRingAllReduce ? 2 * (n - 1) : n - 1;
}

// In step s rank r sends chunk (r - s) mod N: what it received in step s - 1. It also holds the ACK of step s - 2, so
// that a rank behind a slow path has two chunks under way and no more.
void add_ring(Construction& ring, const Collective& collective) {
  const uint32_t n = ring.ranks();
  const uint32_t steps = ring_steps(n, collective.kind);
  std::vector<MessageId> sent(n);
  std::vector<MessageId> sent_before(n);
  for (uint32_t step = 0; step < steps; ++step) {
    std::vector<MessageId> sending(n);
    for (uint32_t rank = 0; rank < n; ++rank) {
      const uint32_t next = rank + 1 == n ? 0 : rank + 1;
      const uint32_t previous = rank == 0 ? n - 1 : rank - 1;
      const uint32_t chunk = (rank + 2 * n - step) % n;
      const uint64_t bytes = collective.bytes / n + (chunk < collective.bytes % n ? 1 : 0);
      std::vector<Cause> causes;
      if (step >= 1) causes.push_back({sent[previous], TriggerOn::kReceived});
      if (step >= 2) causes.push_back({sent_before[rank], TriggerOn::kSent});
      sending[rank] = step >= 2 ? ring.send_later(rank, next, bytes, causes) : ring.send(rank, next, bytes, causes);
      // The last step leaves only when all but the last two have been acknowledged.
      if (step + 2 >= steps) ring.note_due(next, sending[rank]);
    }
    sent_before = std::exchange(sent, std::move(sending));
  }
}

// A rank's side of recursive halving and doubling: the part of the buffer that it is responsible for, and what it did.
struct Half {
  uint64_t from = 0;
  uint64_t to = 0;
  std::vector<MessageId> sent;
  std::vector<Cause> received;  // what its next message has to wait for

  // Beside the last receipt the one before: a fast partner's message may come sooner. All earlier ones are causes of
  // the last message but one, whose ACK the next message waits for.
  void note_received(MessageId m) {
    if (received.size() == 2) received.erase(received.begin());
    received.push_back({m, TriggerOn::kReceived});
  }
};

// One exchange between `rank` and its partner: each sends what `part` says and, from its third message on, holds the
// ACK of the last but one.
MessageId exchange(Construction& all, std::vector<Half>& halves, uint32_t id, uint32_t rank, uint32_t to,
                   uint64_t bytes) {
  Half& half = halves[id];
  std::vector<Cause> causes = half.received;
  const size_t messages = half.sent.size();
  if (messages >= 2) causes.push_back({half.sent[messages - 2], TriggerOn::kSent});
  const MessageId m = messages >= 2 ? all.send_later(rank, to, bytes, causes) : all.send(rank, to, bytes, causes);
  half.sent.push_back(m);
  all.note_due(to, m);
  return m;
}

// The first 2 × folded ranks act in pairs: the even one takes part for both. `id` counts those who take part.
uint32_t rank_of(uint32_t id, uint32_t folded) { return id < folded ? 2 * id : id + folded; }

void exchange_round(Construction& all, std::vector<Half>& halves, uint32_t folded, uint32_t distance, bool halving) {
  std::vector<Half> after = halves;
  for (uint32_t id = 0; id < halves.size(); ++id) {
    const uint32_t partner = id ^ distance;
    const Half& mine = halves[id];
    uint64_t bytes = mine.to - mine.from;
    if (halving) {
      const uint64_t middle = mine.from + (mine.to - mine.from) / 2;
      const bool keeps_low = (id & distance) == 0;
      bytes = keeps_low ? mine.to - middle : middle - mine.from;
      (keeps_low ? after[id].to : after[id].from) = middle;
    } else {
      after[id].from = std::min(mine.from, halves[partner].from);
      after[id].to = std::max(mine.to, halves[partner].to);
    }
    const MessageId m = exchange(all, halves, id, rank_of(id, folded), rank_of(partner, folded), bytes);
    after[id].sent = halves[id].sent;
    after[partner].note_received(m);
  }
  halves = std::move(after);
}

void add_halving_doubling(Construction& all, const Collective& collective) {
  const uint32_t members = std::bit_floor(all.ranks());
  const uint32_t folded = all.ranks() - members;
  std::vector<Half> halves(members);
  for (Half& half : halves) half.to = collective.bytes;
  for (uint32_t id = 0; id < folded; ++id) {
    const MessageId m = all.send(2 * id + 1, 2 * id, collective.bytes);
    all.note_due(2 * id, m);
    halves[id].note_received(m);
  }
  for (uint32_t distance = members / 2; distance >= 1; distance /= 2) {
    exchange_round(all, halves, folded, distance, true);
  }
  for (uint32_t distance = 1; distance < members; distance *= 2) {
    exchange_round(all, halves, folded, distance, false);
  }
  for (uint32_t id = 0; id < folded; ++id) {
    exchange(all, halves, id, 2 * id, 2 * id + 1, collective.bytes);
  }
}

void add_all_to_all(Construction& all, const Collective& collective) {
  const uint32_t n = all.ranks();
  for (uint32_t rank = 0; rank < n; ++rank) {
    for (uint32_t step = 1; step < n; ++step) {
      const uint32_t to = static_cast<uint32_t>((uint64_t{rank} + step) % n);
      all.note_due(to, all.send(rank, to, collective.bytes));
    }
  }
}

void add_staggered_all_to_all(Construction& all, const Collective& collective) {
  const uint32_t n = all.ranks();
  const uint64_t ahead = collective.in_flight;
  std::vector<std::vector<MessageId>> sent(n);  // sent[k][rank], of the steps still waited for
  for (uint32_t step = 1; step < n; ++step) {
    sent[step].resize(n);
    for (uint32_t rank = 0; rank < n; ++rank) {
      const auto to = static_cast<uint32_t>((uint64_t{rank} + step) % n);
      std::vector<Cause> causes;
      if (step > ahead) {
        const uint64_t awaited = step - ahead;
        causes.push_back({sent[awaited][(rank + n - awaited) % n], TriggerOn::kReceived});
      }
      const bool later = step > 2 * ahead;
      if (later) causes.push_back({sent[step - 2 * ahead][rank], TriggerOn::kSent});
      sent[step][rank] =
          later ? all.send_later(rank, to, collective.bytes, causes) : all.send(rank, to, collective.bytes, causes);
      all.note_due(to, sent[step][rank]);
    }
    if (step > 2 * ahead) sent[step - 2 * ahead] = {};
  }
}

uint64_t chunks_of(uint32_t ranks, CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kRingAllReduce:
    case CollectiveKind::kRingAllGather:
    case CollectiveKind::kRingReduceScatter:
      return ranks;
    case CollectiveKind::kHalvingDoubling:
      return std::bit_floor(ranks);
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kStaggeredAllToAll:
      return 1;
  }
  return 1;
}

struct Name {
  CollectiveKind kind;
  std::string_view name;
};
constexpr Name kNames[] = {{CollectiveKind::kRingAllReduce, "ring-all-reduce"},
                           {CollectiveKind::kRingAllGather, "all-gather"},
                           {CollectiveKind::kRingReduceScatter, "reduce-scatter"},
                           {CollectiveKind::kHalvingDoubling, "halving-doubling"},
                           {CollectiveKind::kAllToAll, "all-to-all"},
                           {CollectiveKind::kStaggeredAllToAll, "staggered-all-to-all"}};

}  // namespace

std::vector<std::vector<MessageId>> add_collective(WorkloadBuilder& builder, const std::vector<HostId>& hosts,
                                                   const Collective& collective, const std::vector<RankBegin>& begin) {
  if (hosts.size() < 2) throw_bad_input("{} needs at least 2 ranks", collective_name(collective.kind));
  if (begin.size() != hosts.size()) throw_failed("{} begins for {} ranks", begin.size(), hosts.size());
  const uint32_t n = static_cast<uint32_t>(hosts.size());
  if (collective.bytes < chunks_of(n, collective.kind)) {
    throw_bad_input("{} of {} bytes among {} ranks; at least {} bytes are needed", collective_name(collective.kind),
                    collective.bytes, n, chunks_of(n, collective.kind));
  }
  if (collective.in_flight == 0) throw_bad_input("an all-to-all needs at least 1 step under way");
  builder.expect(collective_messages(n, collective));
  Construction construction(builder, hosts, begin);
  switch (collective.kind) {
    case CollectiveKind::kRingAllReduce:
    case CollectiveKind::kRingAllGather:
    case CollectiveKind::kRingReduceScatter:
      add_ring(construction, collective);
      break;
    case CollectiveKind::kHalvingDoubling:
      add_halving_doubling(construction, collective);
      break;
    case CollectiveKind::kAllToAll:
      add_all_to_all(construction, collective);
      break;
    case CollectiveKind::kStaggeredAllToAll:
      add_staggered_all_to_all(construction, collective);
      break;
  }
  return construction.take_due();
}

uint64_t collective_messages(uint32_t ranks, const Collective& collective) {
  const uint64_t n = ranks;
  if (n < 2) return 0;
  switch (collective.kind) {
    case CollectiveKind::kRingAllReduce:
      return n * 2 * (n - 1);
    case CollectiveKind::kHalvingDoubling: {
      const uint64_t members = std::bit_floor(n);
      return members * 2 * static_cast<uint64_t>(std::bit_width(members) - 1) + 2 * (n - members);
    }
    case CollectiveKind::kRingAllGather:
    case CollectiveKind::kRingReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kStaggeredAllToAll:
      return n * (n - 1);
  }
  return 0;
}

uint32_t collective_phases(uint32_t ranks, const Collective& collective) {
  if (ranks < 2) return 0;
  switch (collective.kind) {
    case CollectiveKind::kRingAllReduce:
    case CollectiveKind::kRingAllGather:
    case CollectiveKind::kRingReduceScatter:
      return ring_steps(ranks, collective.kind);
    case CollectiveKind::kHalvingDoubling:
      return 2 * static_cast<uint32_t>(std::bit_width(ranks) - 1) + (std::has_single_bit(ranks) ? 0 : 2);
    case CollectiveKind::kAllToAll:
      return 1;
    case CollectiveKind::kStaggeredAllToAll:
      return (ranks - 2) / collective.in_flight + 1;
  }
  return 0;
}

bool collective_runs_in_steps(uint32_t ranks, const Collective& collective) {
  switch (collective.kind) {
    case CollectiveKind::kHalvingDoubling:
      return std::has_single_bit(ranks);
    case CollectiveKind::kStaggeredAllToAll:
      return collective.in_flight == 1;
    default:
      return true;
  }
}

std::string_view collective_name(CollectiveKind kind) {
  for (const Name& entry : kNames) {
    if (entry.kind == kind) return entry.name;
  }
  return "unknown";
}

CollectiveKind find_collective(std::string_view name) {
  std::string known;
  for (const Name& entry : kNames) {
    if (entry.name == name) return entry.kind;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw_bad_input("no collective \"{}\"; there are {}", name, known);
}

}  // namespace heddle::lab
