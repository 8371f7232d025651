#include "telemetry/path_delay.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace heddle::telemetry {

namespace {

double smoothed(double old, double now, unsigned shift) {
  return old + (now - old) / static_cast<double>(uint64_t{1} << shift);
}

Duration smoothed(Duration old, Duration now, unsigned shift) {
  const auto change = static_cast<int64_t>(now) - static_cast<int64_t>(old);
  return static_cast<Duration>(static_cast<int64_t>(old) + change / (int64_t{1} << shift));
}

// What `a` is above `b`, of times that wrap.
int64_t above(Duration a, Duration b) { return static_cast<int64_t>(a - b); }

// Members are compared by what was heard within so many periods.
constexpr unsigned kFreshPeriods = 8;

}  // namespace

std::vector<uint32_t> apportion(const std::vector<double>& parts, uint32_t slots) {
  const double all = std::accumulate(parts.begin(), parts.end(), 0.0);
  std::vector<uint32_t> counts(parts.size());
  std::vector<double> remainders(parts.size());
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  uint32_t given = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double share = parts[i] / all * slots;
    counts[i] = static_cast<uint32_t>(share);
    remainders[i] = share - counts[i];
    given += counts[i];
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  for (size_t i = 0; given < slots; i = (i + 1) % order.size()) {
    if (parts[order[i]] <= 0) continue;
    counts[order[i]]++;
    ++given;
  }
  return counts;
}

PathDelay::PathDelay(const PathDelaySettings& settings, std::span<const uint32_t> initial)
    : settings_(settings), members_(initial.size()), states_(initial.size()), initial_(initial.begin(), initial.end()) {
  std::vector<double> parts(initial.begin(), initial.end());
  if (std::all_of(parts.begin(), parts.end(), [](double part) { return part <= 0; })) {
    std::fill(parts.begin(), parts.end(), 1.0);
    std::fill(initial_.begin(), initial_.end(), 1U);
  }
  shares_ = apportion(parts, kShareSlots);
  settings_.outstanding = std::bit_ceil(settings_.outstanding);  // so that sequence numbers may wrap
  for (State& state : states_) state.flights.resize(settings_.outstanding);
}

PathDelay::Flight& PathDelay::flight_of(State& state, uint32_t sequence) const {
  return state.flights[sequence % settings_.outstanding];
}

void PathDelay::raise_times(Duration timeout, Duration max_age) {
  settings_.timeout = std::max(settings_.timeout, timeout);
  settings_.max_age = std::max(settings_.max_age, max_age);
}

uint32_t PathDelay::send(unsigned member, Time now) {
  State& state = states_[member];
  expire(member, now);
  const uint32_t sequence = state.next_sequence++;
  Flight& flight = flight_of(state, sequence);
  if (flight.out) count_lost(member, flight.sequence);  // as many as that have been sent since
  flight = {sequence, now, true};
  members_[member].sent++;
  return sequence;
}

void PathDelay::receive(unsigned member, uint32_t sequence, const PathReading& reading, Time now) {
  Member& of = members_[member];
  State& state = states_[member];
  if (sequence - state.next_sequence < 0x80000000U) return;  // never sent
  Flight& flight = flight_of(state, sequence);
  if (!flight.out || flight.sequence != sequence) {
    state.lost_in_row = 0;  // given up, and yet it has come: late is not lost
    if (++state.late >= settings_.good_after) of.bad = false;
  } else {
    flight.out = false;
    of.returned++;
    of.loss = smoothed(of.loss, 0.0, settings_.loss_shift);
    state.lost_in_row = 0;
    if (sequence - state.answered < 0x80000000U) state.answered = sequence + 1;
    if (++state.returned_in_row >= settings_.good_after) of.bad = false;
  }
  const double capacity = static_cast<double>(reading.bottleneck.bits_per_second()) / 1e6;
  const Duration whole = settings_.wires ? reading.transit : reading.delay;
  const Duration wire = whole - reading.delay;
  if (!of.measured) {
    state.wire = wire;
    of.wire = 0;
    of.delay = reading.delay;
    of.beyond = reading.beyond;
    of.jitter = 0;
    of.capacity = capacity;
  } else {
    const int64_t change = above(whole, state.last);
    of.jitter = smoothed(of.jitter, static_cast<Duration>(change < 0 ? -change : change), 4);
    state.wire += static_cast<Duration>(above(wire, state.wire) / (int64_t{1} << settings_.delay_shift));
    of.delay = smoothed(of.delay, reading.delay, settings_.delay_shift);
    of.beyond = smoothed(of.beyond, reading.beyond, settings_.delay_shift);
    of.capacity =
        capacity == 0 || of.capacity == 0 ? capacity : smoothed(of.capacity, capacity, settings_.capacity_shift);
  }
  of.measured = true;
  of.heard = now;
  state.last = whole;
  if (settings_.overtaken != 0) give_up_overtaken(member, sequence);
}

// Loss is known as soon as later probes are back, not only when time is up: shares that answer to it must not lag.
void PathDelay::give_up_overtaken(unsigned member, uint32_t by) {
  State& state = states_[member];
  while (state.oldest != state.next_sequence && static_cast<int32_t>(by - state.oldest - settings_.overtaken) >= 0) {
    Flight& flight = flight_of(state, state.oldest++);
    if (!flight.out) continue;
    flight.out = false;
    count_lost(member, flight.sequence);
  }
}

void PathDelay::count_lost(unsigned member, uint32_t sequence) {
  Member& of = members_[member];
  State& state = states_[member];
  of.lost++;
  of.loss = smoothed(of.loss, 1.0, settings_.loss_shift);
  if (sequence - state.answered >= 0x80000000U) return;  // a later one has come back since
  state.returned_in_row = 0;
  if (++state.lost_in_row < settings_.bad_after || of.bad) return;
  of.bad = true;
  state.late = 0;
}

// Oldest first, so that what was lost in a row counts as such.
void PathDelay::expire(unsigned member, Time now) {
  State& state = states_[member];
  if (state.next_sequence - state.oldest > settings_.outstanding) {
    state.oldest = state.next_sequence - settings_.outstanding;
  }
  for (; state.oldest != state.next_sequence; ++state.oldest) {
    Flight& flight = flight_of(state, state.oldest);
    if (!flight.out) continue;
    if (elapsed(now, flight.sent) < settings_.timeout) return;
    flight.out = false;
    count_lost(member, flight.sequence);
  }
}

// The quickest member's wires are taken for empty. All are heard of by the same two clocks, whose difference thus falls
// out, and at about the same time, so that clocks of different speed matter as little.
void PathDelay::compare_wires(Time now, Duration period) {
  const auto is_fresh = [&](unsigned i) {
    return members_[i].measured && !members_[i].bad && elapsed(now, members_[i].heard) <= kFreshPeriods * period;
  };
  std::optional<Duration> least;
  for (unsigned i = 0; i < size(); ++i) {
    if (is_fresh(i) && (!least || above(states_[i].wire, *least) < 0)) least = states_[i].wire;
  }
  for (unsigned i = 0; i < size(); ++i) {
    if (is_fresh(i)) members_[i].wire = states_[i].wire - *least;
  }
}

bool PathDelay::update(Time now, Duration period) {
  for (unsigned i = 0; i < size(); ++i) {
    expire(i, now);
    Member& of = members_[i];
    if (of.measured && elapsed(now, of.heard) > settings_.max_age) of.measured = false;
  }
  if (settings_.wires) compare_wires(now, period);
  bool changed = size() > 1 && move_towards(wanted(period));
  for (unsigned i = 0; i < size(); ++i) {
    changed = changed || states_[i].bad != members_[i].bad;
    states_[i].bad = members_[i].bad;
  }
  return changed;
}

Duration PathDelay::base_for(Duration period) const {
  return std::max(settings_.base, (2 * period) << settings_.delay_shift);
}

// Members of whom nothing is known count as the average of the others, by the rate of their own link; so do capacities
// that no switch on the way could tell.
std::vector<double> PathDelay::wanted(Duration period) const {
  double known = 0;  // Mb/s per unit of the initial shares
  double per_unit = 0;
  double delays = 0;
  unsigned measured = 0;
  for (unsigned i = 0; i < size(); ++i) {
    const Member& of = members_[i];
    if (!of.measured) continue;
    ++measured;
    delays += static_cast<double>(of.delay + of.wire);
    if (of.capacity <= 0 || initial_[i] == 0) continue;
    per_unit += of.capacity / initial_[i];
    known += 1;
  }
  per_unit = known == 0 ? 1 : per_unit / known;
  const double usual_delay = measured == 0 ? 0 : delays / measured;
  const bool all_bad = std::all_of(members_.begin(), members_.end(), [](const Member& of) { return of.bad; });
  const auto base = static_cast<double>(base_for(period));
  std::vector<double> parts;
  for (unsigned i = 0; i < size(); ++i) {
    const Member& of = members_[i];
    const double capacity = of.measured && of.capacity > 0 ? of.capacity : per_unit * initial_[i];
    const double delay = of.measured ? static_cast<double>(of.delay + of.wire) : usual_delay;
    const double arrives = 1 - of.loss;
    parts.push_back(of.bad && !all_bad ? 0 : capacity / (delay + base) * std::max(arrives * arrives, 1e-3));
  }
  if (std::all_of(parts.begin(), parts.end(), [](double part) { return part <= 0; })) parts.assign(size(), 1.0);
  return parts;
}

bool PathDelay::move_towards(const std::vector<double>& wanted) {
  const std::vector<uint32_t> goal = apportion(wanted, kShareSlots);
  uint32_t far = 0;  // slots that would have to move
  bool from_bad = false;
  for (unsigned i = 0; i < size(); ++i) {
    if (goal[i] > shares_[i]) far += goal[i] - shares_[i];
    from_bad = from_bad || (members_[i].bad && shares_[i] > goal[i]);
  }
  if (far == 0 || (far < kLeastMoved && !from_bad)) return false;
  if (far <= kMostMoved) {
    shares_ = goal;
    return true;
  }
  // Everyone goes the same part of its way, rounded down where it gives and up where it takes: the takers have room
  // for all that is given.
  const auto part_of = [&](uint32_t way) { return static_cast<uint32_t>(uint64_t{way} * kMostMoved / far); };
  uint32_t given_up = 0;
  for (unsigned i = 0; i < size(); ++i) {
    if (goal[i] >= shares_[i]) continue;
    const uint32_t moved = part_of(shares_[i] - goal[i]);
    shares_[i] -= moved;
    given_up += moved;
  }
  for (unsigned i = 0; i < size() && given_up != 0; ++i) {
    if (goal[i] <= shares_[i]) continue;
    const uint32_t moved = std::min(given_up, part_of(goal[i] - shares_[i]) + 1);
    shares_[i] += moved;
    given_up -= moved;
  }
  return true;
}

unsigned PathDelay::bands_below_best(unsigned i) const {
  double best = 0;
  const auto per_capacity = [this](unsigned m) { return static_cast<double>(shares_[m]) / std::max(1U, initial_[m]); };
  for (unsigned m = 0; m < size(); ++m) best = std::max(best, per_capacity(m));
  const double mine = per_capacity(i);
  unsigned bands = 0;
  for (double half = best / 2; bands < 7 && mine <= half; half /= 2) ++bands;
  return bands;
}

void PathDelay::adopt(unsigned member, const PathDelay& before, unsigned of) {
  members_[member] = before.members_[of];
  states_[member] = before.states_[of];
  std::vector<Flight> flights(settings_.outstanding);
  for (const Flight& flight : states_[member].flights) {
    if (flight.out) flights[flight.sequence % settings_.outstanding] = flight;
  }
  states_[member].flights = std::move(flights);
}

}  // namespace heddle::telemetry
