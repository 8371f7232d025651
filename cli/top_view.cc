#include "cli/top_view.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace heddle::cli {

namespace {

uint64_t number(const Json& object, const char* key) { return object.at(key).get<uint64_t>(); }
std::string word(const Json& object, const char* key) { return object.at(key).get<std::string>(); }

// Growth of a counter. A counter that shrank belongs to another switch at the same socket: it began at 0.
uint64_t growth(uint64_t before, uint64_t after) { return after >= before ? after - before : after; }

uint64_t sum_of_drops(const Json& object) {
  uint64_t sum = 0;
  for (const auto& [reason, count] : object.at("drops").items()) sum += count.get<uint64_t>();
  return sum;
}

// Finds what belongs together in two samples: ports by name, members by where they lead.
class Change {
 public:
  Change(const Sample& before, const Sample& after)
      : before_(before), after_(after), seconds_(std::chrono::duration<double>(after.at - before.at).count()) {
    for (const Json& port : before.totals.at("ports")) ports_[word(port, "name")] = &port;
    for (const Json& group : before.totals.at("groups")) {
      for (const Json& member : group.at("members")) members_[key_of(group, member)] = &member;
    }
    for (const Json& queue : after.queues.at("queues")) queued_[word(queue, "port")] += number(queue, "bytes");
  }

  double per_second(uint64_t count) const { return seconds_ > 0 ? static_cast<double>(count) / seconds_ : 0; }

  uint64_t of_port(const Json& port, const char* counter) const {
    const auto then = ports_.find(word(port, "name"));
    return growth(then == ports_.end() ? 0 : number(*then->second, counter), number(port, counter));
  }
  uint64_t drops_of_port(const Json& port) const {
    const auto then = ports_.find(word(port, "name"));
    return growth(then == ports_.end() ? 0 : sum_of_drops(*then->second), sum_of_drops(port));
  }
  uint64_t of_member(const Json& group, const Json& member, const char* counter) const {
    const auto then = members_.find(key_of(group, member));
    return growth(then == members_.end() ? 0 : number(*then->second, counter), number(member, counter));
  }
  uint64_t of_group(const Json& group, const char* counter) const {
    uint64_t sum = 0;
    for (const Json& member : group.at("members")) sum += of_member(group, member, counter);
    return sum;
  }
  uint64_t of_drop(const std::string& reason, uint64_t now) const {
    return growth(before_.totals.at("drops").value(reason, uint64_t{0}), now);
  }
  uint64_t queued(const std::string& port) const {
    const auto found = queued_.find(port);
    return found == queued_.end() ? 0 : found->second;
  }

  // Per cent of the time that a worker spent in rounds that moved packets.
  double load(size_t worker) const {
    const Json& workers = before_.totals.at("workers");
    const uint64_t ticks = after_.tsc - before_.tsc;
    if (worker >= workers.size() || ticks == 0) return 0;
    const uint64_t busy =
        growth(number(workers[worker], "busy_ticks"), number(after_.totals.at("workers")[worker], "busy_ticks"));
    // The counters are a moment older than the clock: never above 100.
    return std::min(100.0, 100.0 * static_cast<double>(busy) / static_cast<double>(ticks));
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string, uint64_t>;
  static Key key_of(const Json& group, const Json& member) {
    return {word(group, "name"), word(member, "port"), word(member, "mac"), number(member, "vlan")};
  }

  const Sample& before_;
  const Sample& after_;
  double seconds_;
  std::map<std::string, const Json*> ports_;
  std::map<Key, const Json*> members_;
  std::map<std::string, uint64_t> queued_;
};

std::string share_of(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f}%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string workers_text(const Change& change, const Json& workers) {
  std::string text;
  for (size_t i = 0; i < workers.size(); ++i) {
    text += fmt::format("{}{:.0f}%", i == 0 ? "" : " ", change.load(i));
  }
  return text;
}

std::vector<Row> port_rows(const Change& change, const Json& ports) {
  std::vector<Row> rows{
      {"port", "link", "rate", "rx pps", "rx b/s", "tx pps", "tx b/s", "queued bytes", "drops/s", "drops"}};
  for (const Json& port : ports) {
    const auto pps = [&](const char* counter) {
      return short_number(change.per_second(change.of_port(port, counter)));
    };
    const auto bps = [&](const char* counter) {
      return short_number(8 * change.per_second(change.of_port(port, counter)));
    };
    rows.push_back({word(port, "name"), port.at("up").get<bool>() ? "up" : "down", word(port, "rate"),
                    pps("rx_packets"), bps("rx_bytes"), pps("tx_packets"), bps("tx_bytes"),
                    std::to_string(change.queued(word(port, "name"))),
                    short_number(change.per_second(change.drops_of_port(port))), std::to_string(sum_of_drops(port))});
  }
  return rows;
}

std::vector<Row> member_rows(const Change& change, const Json& groups) {
  std::vector<Row> rows{{"group", "scheduler", "port", "mac", "link", "share", "pps", "b/s"}};
  for (const Json& group : groups) {
    const uint64_t all = change.of_group(group, "packets");
    for (const Json& member : group.at("members")) {
      const uint64_t packets = change.of_member(group, member, "packets");
      rows.push_back({word(group, "name"), word(group, "scheduler"), word(member, "port"), word(member, "mac"),
                      member.at("up").get<bool>() ? "up" : "down", share_of(packets, all),
                      short_number(change.per_second(packets)),
                      short_number(8 * change.per_second(change.of_member(group, member, "bytes")))});
    }
  }
  return rows;
}

std::vector<Row> drop_rows(const Change& change, const Json& drops) {
  std::vector<Row> rows{{"dropped as", "packets/s", "packets"}};
  for (const auto& [reason, count] : drops.items()) {
    const auto now = count.get<uint64_t>();
    rows.push_back({reason, short_number(change.per_second(change.of_drop(reason, now))), std::to_string(now)});
  }
  return rows;
}

}  // namespace

std::string top_screen(const Sample& before, const Sample& after) {
  const Change change(before, after);
  std::string text = fmt::format("workers busy: {}\n\n", workers_text(change, after.totals.at("workers")));
  text += text_table(port_rows(change, after.totals.at("ports")));
  if (const Json& groups = after.totals.at("groups"); !groups.empty()) {
    text += "\n" + text_table(member_rows(change, groups));
  }
  if (const Json& drops = after.totals.at("drops"); !drops.empty()) {
    text += "\n" + text_table(drop_rows(change, drops));
  }
  return text;
}

std::string top_line(const Sample& before, const Sample& after) {
  const Change change(before, after);
  std::map<std::string, uint64_t> sum;
  uint64_t queued = 0;
  uint64_t drops = 0;
  for (const Json& port : after.totals.at("ports")) {
    for (const char* counter : {"rx_packets", "rx_bytes", "tx_packets", "tx_bytes"}) {
      sum[counter] += change.of_port(port, counter);
    }
    queued += change.queued(word(port, "name"));
    drops += change.drops_of_port(port);
  }
  const auto rate = [&](uint64_t count) { return short_number(change.per_second(count)); };
  std::string line =
      fmt::format("rx {} pps {} b/s  tx {} pps {} b/s  queued {} B  drops {}/s  busy {}", rate(sum["rx_packets"]),
                  rate(8 * sum["rx_bytes"]), rate(sum["tx_packets"]), rate(8 * sum["tx_bytes"]), queued, rate(drops),
                  workers_text(change, after.totals.at("workers")));
  for (const Json& group : after.totals.at("groups")) {
    if (group.at("members").size() < 2) continue;
    const uint64_t all = change.of_group(group, "packets");
    line += fmt::format("  {}:", word(group, "name"));
    for (const Json& member : group.at("members")) {
      line += fmt::format(" {} {}", word(member, "port"), share_of(change.of_member(group, member, "packets"), all));
    }
  }
  return line;
}

}  // namespace heddle::cli
