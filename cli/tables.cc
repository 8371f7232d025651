#include "cli/tables.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include <fmt/format.h>

namespace heddle::cli {

namespace {

std::string text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "-";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_array()) {
    std::string all;
    for (const Json& item : value) all += (all.empty() ? "" : ",") + text(item);
    return all;
  }
  return value.dump();
}

std::string bit_per_cent(const Json& share) { return fmt::format("{:.1f}%", share.get<double>() * 100); }

std::vector<Row> ports_rows(const Json& view) {
  std::vector<Row> rows{
      {"port", "link", "rate", "rx packets", "rx bytes", "tx packets", "tx bytes", "drops", "driver", "mac"}};
  for (const Json& port : view.at("ports")) {
    uint64_t drops = 0;
    for (const auto& [reason, count] : port.at("drops").items()) drops += count.get<uint64_t>();
    rows.push_back({text(port.at("name")), port.at("up").get<bool>() ? "up" : "down", text(port.at("rate")),
                    text(port.at("rx_packets")), text(port.at("rx_bytes")), text(port.at("tx_packets")),
                    text(port.at("tx_bytes")), std::to_string(drops), text(port.at("driver")), text(port.at("mac"))});
  }
  return rows;
}

std::vector<Row> queues_rows(const Json& view) {
  std::vector<Row> rows{
      {"port", "class", "priority", "weight", "limit", "packets", "bytes", "peak bytes", "since last"}};
  for (const Json& queue : view.at("queues")) {
    rows.push_back({text(queue.at("port")), text(queue.at("class")), text(queue.at("priority")),
                    text(queue.at("weight")), text(queue.at("limit_bytes")), text(queue.at("packets")),
                    text(queue.at("bytes")), text(queue.at("peak_bytes")), text(queue.at("recent_peak"))});
  }
  return rows;
}

std::vector<Row> buffer_rows(const Json& view) {
  std::vector<Row> rows{{"port", "class", "kind", "reserved", "shared", "of", "headroom", "of", "sender", "peak bytes",
                         "since last", "peak headroom", "violations"}};
  for (const Json& group : view.at("buffer").at("groups")) {
    rows.push_back(
        {text(group.at("port")), text(group.at("class")), group.at("lossless").get<bool>() ? "lossless" : "lossy",
         text(group.at("reserved")), text(group.at("shared")), text(group.at("threshold")), text(group.at("headroom")),
         text(group.at("headroom_limit")), group.at("xoff").get<bool>() ? "paused" : "-", text(group.at("peak_bytes")),
         text(group.at("recent_peak")), text(group.at("peak_headroom")), text(group.at("lossless_violations"))});
  }
  return rows;
}

std::string buffer_text(const Json& view) {
  const Json& buffer = view.at("buffer");
  if (buffer.at("bytes") == 0) return "no shared buffer: queues are limited one by one\n";
  return fmt::format("{} bytes, {} packets; shared pool {} bytes, {} used\n", text(buffer.at("bytes")),
                     text(buffer.at("packets")), text(buffer.at("shared_bytes")), text(buffer.at("shared_used"))) +
         text_table(buffer_rows(view));
}

std::vector<Row> pfc_rows(const Json& view) {
  std::vector<Row> rows{{"port", "class", "backend", "rx pause", "rx resume", "tx pause", "tx resume", "receive",
                         "queue", "paused us", "global pause", "malformed"}};
  for (const Json& pfc : view.at("pfc")) {
    rows.push_back({text(pfc.at("port")), text(pfc.at("class")), text(pfc.at("backend")), text(pfc.at("rx_pause")),
                    text(pfc.at("rx_resume")), text(pfc.at("tx_pause")), text(pfc.at("tx_resume")),
                    pfc.at("receiving").get<bool>() ? "open" : "closed",
                    pfc.at("paused").get<bool>() ? "paused" : "open",
                    fmt::format("{:.1f}", pfc.at("paused_us").get<double>()), text(pfc.at("rx_global_pause")),
                    text(pfc.at("rx_malformed"))});
  }
  return rows;
}

std::string watchdog_text(const Json& view) {
  if (view.at("watchdog").empty()) return "no port has a PFC watchdog\n";
  std::vector<Row> rows{
      {"port", "class", "detect ms", "restore ms", "action", "state", "storms", "restores", "dropped"}};
  for (const Json& dog : view.at("watchdog")) {
    rows.push_back({text(dog.at("port")), text(dog.at("class")), fmt::format("{:g}", dog.at("detect_ms").get<double>()),
                    fmt::format("{:g}", dog.at("restore_ms").get<double>()), text(dog.at("action")),
                    text(dog.at("state")), text(dog.at("storms")), text(dog.at("restores")), text(dog.at("dropped"))});
  }
  std::string page = text_table(rows);
  for (const Json& event : view.at("events")) {
    const auto at = event.at("at_ms").get<int64_t>();
    const auto seconds = static_cast<std::time_t>(at / 1000);
    std::tm utc{};
    gmtime_r(&seconds, &utc);
    page += fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z  {} class {}: {}\n", utc.tm_year + 1900,
                        utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, at % 1000,
                        text(event.at("port")), text(event.at("class")), text(event.at("event")));
  }
  return page;
}

std::vector<Row> ecn_rows(const Json& view) {
  std::vector<Row> rows{{"port", "class", "kmin", "kmax", "pmax", "eligible", "marked", "share"}};
  for (const Json& ecn : view.at("ecn")) {
    rows.push_back({text(ecn.at("port")), text(ecn.at("class")), text(ecn.at("kmin")), text(ecn.at("kmax")),
                    bit_per_cent(ecn.at("pmax")), text(ecn.at("eligible")), text(ecn.at("marked")),
                    bit_per_cent(ecn.at("share"))});
  }
  return rows;
}

std::vector<Row> routes_rows(const Json& view) {
  std::vector<Row> rows{{"prefix", "via"}};
  for (const Json& route : view.at("routes")) rows.push_back({text(route.at("prefix")), text(route.at("via"))});
  return rows;
}

std::vector<Row> paths_rows(const Json& view) {
  std::vector<Row> rows{{"group", "scheduler", "port", "mac", "vlan", "weight", "link", "packets", "bytes", "share"}};
  for (const Json& group : view.at("groups")) {
    for (const Json& member : group.at("members")) {
      rows.push_back({text(group.at("name")), text(group.at("scheduler")), text(member.at("port")),
                      text(member.at("mac")), text(member.at("vlan")), text(member.at("weight")),
                      member.at("up").get<bool>() ? "up" : "down", text(member.at("packets")), text(member.at("bytes")),
                      bit_per_cent(member.at("share"))});
    }
  }
  return rows;
}

// What concerns all groups, where there is something to say.
std::string path_notes(const Json& view) {
  std::string notes;
  const Json& flowlets = view.at("flowlets");
  if (flowlets.at("begun") != 0) {
    notes += fmt::format("flowlets: {} begun, {} took another path, {} packets found no room\n",
                         text(flowlets.at("begun")), text(flowlets.at("reroutes")), text(flowlets.at("collisions")));
  }
  if (const Json& r = view.at("resequencer"); !r.is_null()) {
    notes += fmt::format(
        "resequencer: {} in order, {} held, {} released in order, {} timed out, {} overflowed, {} late, at most {} "
        "ahead\n",
        text(r.at("in_order")), text(r.at("held")), text(r.at("released")), text(r.at("timed_out")),
        text(r.at("overflowed")), text(r.at("late")), text(r.at("max_degree")));
  }
  return notes.empty() ? notes : "\n" + notes;
}

std::string one_place(const Json& value) { return value.is_null() ? "-" : fmt::format("{:.1f}", value.get<double>()); }

// What probes say, and what they cost.
std::string probes_text(const Json& view) {
  const Json& probes = view.at("path_delay");
  if (probes.is_null()) return "";
  double most = 0;
  for (const Json& port : probes.at("ports")) most = std::max(most, port.at("share").get<double>());
  std::string page =
      fmt::format("\nprobes: {} sent, {} returned, {} of others turned round; at most {:.4f}% of a link",
                  text(probes.at("sent")), text(probes.at("returned")), text(probes.at("turned_round")), most * 100);
  if (probes.at("targets").empty()) return page + "\n";
  page += fmt::format("; a sweep takes {:.0f} us\n", probes.at("sweep_us").get<double>());
  std::vector<Row> rows{{"destination", "group", "port", "mac", "share", "path", "delay us", "wire us", "jitter us",
                         "loss", "capacity", "age ms"}};
  for (const Json& target : probes.at("targets")) {
    for (const Json& member : target.at("members")) {
      rows.push_back({text(target.at("name")), text(target.at("group")), text(member.at("port")),
                      text(member.at("mac")), bit_per_cent(member.at("share")),
                      member.at("bad").get<bool>()        ? "bad"
                      : member.at("measured").get<bool>() ? "measured"
                                                          : "unknown",
                      one_place(member.at("delay_us")), one_place(member.at("wire_us")),
                      one_place(member.at("jitter_us")), bit_per_cent(member.at("loss")),
                      fmt::format("{:g}G", member.at("capacity_gbps").get<double>()), one_place(member.at("age_ms"))});
    }
  }
  return page + text_table(rows);
}

std::vector<Row> drops_rows(const Json& view) {
  std::vector<Row> rows{{"reason", "packets", "port", "meaning"}};
  for (const auto& [port, drops] : view.at("ports").items()) {
    for (const auto& [reason, count] : drops.items()) {
      rows.push_back({reason, text(count), port, text(view.at("meaning").at(reason))});
    }
  }
  return rows;
}

}  // namespace

std::string text_table(const std::vector<Row>& rows) {
  std::vector<size_t> width;
  for (const Row& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool number = !row[i].empty() && (std::isdigit(static_cast<unsigned char>(row[i][0])) != 0) &&
                          row[i].find(':') == std::string::npos && row[i].find('/') == std::string::npos;
      line += number ? fmt::format("{:>{}}  ", row[i], width[i]) : fmt::format("{:<{}}  ", row[i], width[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string table_of(const std::string& what, const Json& view) {
  if (what == "queues") return text_table(queues_rows(view));
  if (what == "buffer") return buffer_text(view);
  if (what == "pfc") return text_table(pfc_rows(view));
  if (what == "watchdog") return watchdog_text(view);
  if (what == "ecn") return text_table(ecn_rows(view));
  if (what == "routes") return text_table(routes_rows(view));
  if (what == "paths") return text_table(paths_rows(view)) + path_notes(view) + probes_text(view);
  if (what == "drops") return text_table(drops_rows(view));
  return text_table(ports_rows(view));
}

std::string short_number(double value) {
  constexpr std::string_view kUnits = " kMGTP";
  size_t unit = 0;
  if (std::fabs(value) < 10'000) return fmt::format("{:.0f}", value);
  while (std::fabs(value) >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.2f}{}", value, kUnits[unit]);
}

}  // namespace heddle::cli
