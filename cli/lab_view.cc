#include "cli/lab_view.h"

#include <algorithm>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "cli/lab_summary.h"
#include "cli/tables.h"

namespace heddle::cli {
namespace {

using Json = nlohmann::ordered_json;

// Three or more significant digits, without a forest of decimals: 1234, 123.4, 12.34, 0.1234.
std::string number(double value) {
  const double size = std::abs(value);
  if (size >= 10'000) return short_number(value);
  return size >= 1000 ? fmt::format("{:.0f}", value)
         : size >= 10 ? fmt::format("{:.1f}", value)
                      : fmt::format("{:.2f}", value);
}
std::string text(const Json& value, std::string_view absent = "-") {
  if (value.is_null()) return std::string(absent);
  if (value.is_number_integer() && value.get<uint64_t>() < 10'000) return std::to_string(value.get<uint64_t>());
  return value.is_string() ? value.get<std::string>() : number(value.get<double>());
}
std::string share(const Json& value) { return value.is_null() ? "-" : fmt::format("{:.3f}", value.get<double>()); }

std::string drops_text(const Json& drops) {
  std::string all;
  for (const auto& [reason, count] : drops.items()) {
    all += fmt::format("{}{} {}", all.empty() ? "" : ", ", count.get<uint64_t>(), reason);
  }
  return all.empty() ? "none" : all;
}

uint64_t sum_of(const Json& counts) {
  uint64_t sum = 0;
  for (const auto& [reason, count] : counts.items()) sum += count.get<uint64_t>();
  return sum;
}

bool complete(const Json& result) { return result.at("completed") == result.at("flows"); }

std::string speed_text(const Json& result) {
  return fmt::format("{} packet-hops in {:.2f} s: {}/s with {} thread{}, {:.0f} MiB", text(result.at("packet_hops")),
                     result.at("wall_s").get<double>(), text(result.at("hops_per_s")),
                     result.at("threads").get<unsigned>(), result.at("threads") == 1 ? "" : "s",
                     result.at("peak_rss_mib").get<double>());
}

// --- one run

std::string makespan_line(const Json& result) {
  const std::string bound =
      fmt::format("lower bound {} us ({})", text(result.at("lower_bound_us")), text(result.at("lower_bound_by")));
  if (!complete(result)) {
    return fmt::format("not reached by {} us ({}); {}", text(result.at("ended_at_us")), text(result.at("ended")),
                       bound);
  }
  return fmt::format("{} us, efficiency {}; {}", text(result.at("makespan_us")), share(result.at("efficiency")), bound);
}

std::string spread_line(const Json& values, std::initializer_list<const char*> which, std::string_view unit) {
  if (values.is_null()) return "-";
  std::string line;
  for (const char* name : which) line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name, text(values.at(name)));
  return line + std::string(unit);
}

// How often queue pairs paused for 1, 16 and 256 us.
std::string gaps_text(const Json& gaps) {
  std::string counts;
  std::string lengths;
  for (size_t i = 0; i < gaps.size(); i += 4) {
    const std::string_view comma = counts.empty() ? "" : ", ";
    counts += fmt::format("{}{}", comma, text(gaps.at(i).at("count")));
    lengths += fmt::format("{}{}", comma, text(gaps.at(i).at("at_least_us")));
  }
  return fmt::format("{} pauses of queue pairs for {} us or longer", counts, lengths);
}

}  // namespace

std::string lab_page(const Json& result) {
  std::string page;
  const auto line = [&page](std::string_view topic, const std::string& what) {
    page += fmt::format("{:<13}{}\n", topic, what);
  };
  const Json& order = result.at("out_of_order");
  line("scheme", fmt::format("{}, seed {}", text(result.at("scheme")), result.at("seed").get<uint64_t>()));
  line("flows",
       fmt::format("{} of {} completed", result.at("completed").get<uint64_t>(), result.at("flows").get<uint64_t>()));
  line("makespan", makespan_line(result));
  line("flow time", spread_line(result.at("fct_us"), {"min", "mean", "p50", "p99", "max"}, " us"));
  line("slowdown", spread_line(result.at("slowdown"), {"mean", "p50", "p99"}, ""));
  line("utilization",
       fmt::format("{}; goodput {} Gbit/s", share(result.at("utilization")), text(result.at("goodput_gbps"))));
  if (const Json steady = result.value("steady_goodput_gbps", Json()); !steady.is_null()) {
    line("steady state", fmt::format("goodput {} Gbit/s", text(steady)));
  }
  line("drops", drops_text(result.at("drops")));
  line("order", fmt::format("{} packets out of order, by up to {} numbers, {} arrivals", text(order.at("packets")),
                            text(order.at("max_degree")), text(order.at("max_extent"))));
  if (const Json& failure = result.at("failure"); !failure.is_null()) {
    line("failure",
         fmt::format("{} at {} us: {} packets lost in {} us, all replaced after {} us; goodput {} -> {} Gbit/s, "
                     "back after {} us",
                     text(failure.at("link")), text(failure.at("at_us")), text(failure.at("lost")),
                     text(failure.at("losing_us")), text(failure.at("repaired_us")),
                     text(failure.at("goodput_gbps").at("before")), text(failure.at("goodput_gbps").at("least")),
                     text(failure.at("recovered_us"))));
  }
  line("resent", fmt::format("{} packets; {} NAKs, {} time-outs, {} duplicates", text(result.at("retransmitted")),
                             text(result.at("naks")), text(result.at("timeouts")), text(result.at("duplicates"))));
  if (const Json& flowlets = result.at("flowlets"); flowlets.at("begun") != 0) {
    line("flowlets", fmt::format("{} begun, {} took another path; {}", text(flowlets.at("begun")),
                                 text(flowlets.at("reroutes")), gaps_text(result.at("send_gaps"))));
  }
  if (!result.at("uplink_imbalance").is_null()) {
    line("uplinks", fmt::format("imbalance {}", spread_line(result.at("uplink_imbalance"), {"mean", "p99"}, "")));
  }
  if (const Json& link = result.at("busiest_link"); !link.is_null()) {
    line("busiest link", fmt::format("{} from {}: {} packets, busy for {} us", text(link.at("link")),
                                     text(link.at("from")), text(link.at("packets")), text(link.at("busy_us"))));
  }
  if (const Json probes = result.value("path_delay", Json()); !probes.is_null()) {
    line("probes",
         fmt::format("{} of {} returned; sweep {} us; at most {:.3f} % of a link; shares moved {} times",
                     text(probes.at("returned")), text(probes.at("sent")), text(probes.at("sweep_us").at("max")),
                     100 * probes.at("busiest_link").get<double>(), text(probes.at("updates"))));
  }
  line("queues", fmt::format("longest {} bytes", text(result.at("peak_queue_bytes"))));
  if (!result.at("pauses_sent").is_null()) {
    line("pauses", fmt::format("{} sent at {} ports, {} us held back in all; {} lossless packets lost",
                               text(result.at("pauses_sent")), result.at("pauses").size(),
                               text(result.at("pause_time_us")), text(result.at("lossless_violations"))));
  }
  if (const Json& victims = result.at("victims"); !victims.is_null() && victims.at("flows") != 0) {
    const Json& worst = victims.at("worst").front();
    const Json& origin = worst.at("origin");
    line("victims",
         fmt::format("{} flows held back by pauses that were not theirs, mean slowdown {} (others {}); most: "
                     "flow {} from host {} to {}, {} us, {} of it for {} to {}",
                     text(victims.at("flows")), text(victims.at("mean_slowdown")),
                     text(victims.at("mean_slowdown_of_others")), text(worst.at("flow")), text(worst.at("src")),
                     text(worst.at("dst")), text(worst.at("held_by_others_us")), text(origin.at("us")),
                     text(origin.at("switch")), text(origin.at("to"))));
  }
  if (!result.at("credit_stall_us").is_null()) {
    uint64_t peak = 0;
    for (const Json& lane : result.at("lanes")) peak = std::max(peak, lane.at("peak_buffer_bytes").get<uint64_t>());
    line("credits", fmt::format("{} us without in all, on {} lane{}; fullest buffer {} of {} bytes",
                                text(result.at("credit_stall_us")), result.at("lanes").size(),
                                result.at("lanes").size() == 1 ? "" : "s", peak,
                                text(result.at("lanes").front().at("buffer_bytes"))));
    const Json& healing = result.at("self_healing");
    if (healing.at("failover_packets") != 0 || healing.at("notices_sent") != 0) {
      line("self-healing", fmt::format("{} packets by another port than their table's; {} notices sent, {} received",
                                       text(healing.at("failover_packets")), text(healing.at("notices_sent")),
                                       text(healing.at("notices_received"))));
    }
  }
  if (!result.at("ecn_marked").is_null()) {
    line("marks",
         fmt::format("{} of {} ECN-capable packets", text(result.at("ecn_marked")), text(result.at("ecn_eligible"))));
  }
  if (const Json& deadlock = result.at("deadlock"); deadlock.is_object()) {
    std::string cycle;
    for (const Json& queue : deadlock.at("cycle")) {
      const std::string lane = queue.contains("vl") ? fmt::format(" (VL {})", text(queue.at("vl"))) : "";
      cycle += fmt::format("{}:{}{} waits for ", text(queue.at("switch")), text(queue.at("port")), lane);
    }
    const Json& broken = deadlock.at("broken_at_us");
    line("deadlock", fmt::format("seen at {} us: {}{}{}", text(deadlock.at("at_us")), cycle,
                                 fmt::format("{}:{}", text(deadlock.at("cycle").front().at("switch")),
                                             text(deadlock.at("cycle").front().at("port"))),
                                 broken.is_null() ? "" : fmt::format("; broken by {} us", text(broken))));
  }
  if (const Json& dog = result.at("watchdog"); !dog.is_null()) {
    line("watchdog", fmt::format("{} storms, {} over; {} packets dropped", text(dog.at("storms")),
                                 text(dog.at("restores")), text(dog.at("dropped"))));
  }
  if (result.at("jobs").size() > 1) {
    for (const Json& job : result.at("jobs")) {
      line(fmt::format("job {}", text(job.at("name"))),
           fmt::format("{} us, lower bound {} us, efficiency {}", text(job.at("makespan_us")),
                       text(job.at("lower_bound_us")), share(job.at("efficiency"))));
    }
  }
  for (const Json& note : result.at("notes")) line("note", text(note));
  line("speed", speed_text(result));
  return page;
}

// --- several runs

namespace {

enum class Better { kNeither, kLow, kHigh };

struct Column {
  std::string_view title;
  Better better;
  // The number that is compared; nothing if the row has none.
  std::function<std::optional<double>(const Json&)> value;
  std::function<std::string(const Json&)> cell;
  std::string_view ideal;         // "bound": the lower bound
  bool only_of_failures = false;  // left out of a table whose runs had none
};

std::optional<double> at(const Json& result, const char* field, const char* part) {
  const Json& value = result.at(field);
  const Json& inner = part == nullptr || value.is_null() ? value : value.at(part);
  return inner.is_null() ? std::nullopt : std::optional<double>(inner.get<double>());
}

std::string makespan_cell(const Json& result) {
  if (complete(result)) return text(result.at("makespan_us"));
  return fmt::format(">{} ({}/{})", text(result.at("ended_at_us")), result.at("completed").get<uint64_t>(),
                     result.at("flows").get<uint64_t>());
}

Column column(std::string_view title, Better better, const char* field, const char* part, std::string_view ideal = "") {
  const auto value = [=](const Json& result) { return at(result, field, part); };
  const auto cell = [=](const Json& result) {
    const auto v = value(result);
    return v ? number(*v) : std::string("-");
  };
  return {title, better, value, cell, ideal};
}

// Until what was lost had been replaced, and goodput was back.
std::optional<double> time_to_recover(const Json& result) {
  const auto repaired = at(result, "failure", "repaired_us");
  const auto recovered = at(result, "failure", "recovered_us");
  if (!repaired || !recovered) return repaired ? repaired : recovered;
  return std::max(*repaired, *recovered);
}

const std::vector<Column>& columns() {
  const auto drops = [](const Json& result) -> std::optional<double> {
    return static_cast<double>(sum_of(result.at("drops")));
  };
  static const std::vector<Column> all{
      {"makespan us", Better::kLow, [](const Json& r) { return at(r, "makespan_us", nullptr); }, makespan_cell,
       "bound"},
      {"efficiency", Better::kHigh, [](const Json& r) { return at(r, "efficiency", nullptr); },
       [](const Json& r) { return share(r.at("efficiency")); }, "1.000"},
      {"utilization", Better::kHigh, [](const Json& r) { return at(r, "utilization", nullptr); },
       [](const Json& r) { return share(r.at("utilization")); }, "1.000"},
      column("FCT mean us", Better::kLow, "fct_us", "mean"),
      column("FCT p99 us", Better::kLow, "fct_us", "p99"),
      column("slowdown p99", Better::kLow, "slowdown", "p99", "1.00"),
      column("imbalance", Better::kNeither, "uplink_imbalance", "mean", "0.00"),
      column("out of order", Better::kNeither, "out_of_order", "packets"),
      column("by up to", Better::kNeither, "out_of_order", "max_degree"),
      column("resent", Better::kNeither, "retransmitted", nullptr),
      {"resent bytes", Better::kLow, [](const Json& r) { return at(r, "resent_bytes", nullptr); },
       [](const Json& r) { return text(r.at("resent_bytes")); }, "", true},
      {"lost", Better::kLow, [](const Json& r) { return at(r, "failure", "lost"); },
       [](const Json& r) { return r.at("failure").is_null() ? "-" : text(r.at("failure").at("lost")); }, "0", true},
      {"recover us", Better::kLow, time_to_recover,
       [](const Json& r) {
         const auto time = time_to_recover(r);
         return time ? number(*time) : std::string("-");
       },
       "", true},
      {"drops", Better::kNeither, drops, [drops](const Json& r) { return number(*drops(r)); }, ""},
      column("credit stall us", Better::kNeither, "credit_stall_us", nullptr),
      {"hops/s", Better::kNeither, [](const Json& r) { return at(r, "hops_per_s", nullptr); },
       [](const Json& r) { return text(r.at("hops_per_s")); }, ""},
  };
  return all;
}

// The best value of a column among rows that completed all flows; nothing where all are the same.
std::optional<double> best_of(const Column& column, const std::vector<const Json*>& rows) {
  std::optional<double> best;
  std::optional<double> worst;
  for (const Json* row : rows) {
    const auto value = column.value(*row);
    if (column.better == Better::kNeither || !value || !complete(*row)) continue;
    if (!best || (column.better == Better::kLow ? *value < *best : *value > *best)) best = value;
    if (!worst || (column.better == Better::kLow ? *value > *worst : *value < *worst)) worst = value;
  }
  return best == worst ? std::nullopt : best;
}

std::string table(const std::vector<const Json*>& rows, bool terminal) {
  const bool failures =
      std::any_of(rows.begin(), rows.end(), [](const Json* row) { return !row->at("failure").is_null(); });
  std::vector<Row> cells;
  cells.push_back({"scheme"});
  cells.push_back({"(ideal)"});
  for (const Json* row : rows) cells.push_back({text(row->at("scheme"))});
  for (const Column& column : columns()) {
    if (column.only_of_failures && !failures) continue;
    if (std::none_of(rows.begin(), rows.end(), [&](const Json* row) { return column.value(*row).has_value(); }))
      continue;
    cells[0].emplace_back(column.title);
    cells[1].push_back(column.ideal == "bound" ? text(rows.front()->at("lower_bound_us")) : std::string(column.ideal));
    const auto best_value = best_of(column, rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto value = column.value(*rows[i]);
      const bool is_best = best_value && value && complete(*rows[i]) && *value == *best_value;
      cells[i + 2].push_back(column.cell(*rows[i]) + (is_best ? "*" : " "));
    }
    for (size_t i : {0, 1}) cells[i].back() += " ";
  }
  std::vector<size_t> width(cells[0].size());
  for (const Row& row : cells) {
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string out;
  for (const Row& row : cells) {
    std::string line = fmt::format("  {:<{}}", row[0], width[0]);
    for (size_t i = 1; i < row.size(); ++i) {
      const std::string cell = fmt::format("  {:>{}}", row[i], width[i]);
      line += terminal && row[i].ends_with('*') ? "\x1b[1m" + cell + "\x1b[0m" : cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string sweep_text(const Json& result) {
  std::string all;
  if (!result.contains("sweep")) return all;
  for (const auto& [key, value] : result.at("sweep").items()) all += fmt::format(", {}={}", key, text(value));
  return all;
}

std::string title(const Json& result) {
  return fmt::format("{}{}: {} flows, lower bound {} us ({}), seed {}\n", text(result.at("workload")),
                     sweep_text(result), result.at("flows").get<uint64_t>(), text(result.at("lower_bound_us")),
                     text(result.at("lower_bound_by")), result.at("seed").get<uint64_t>());
}

}  // namespace

std::string lab_tables(const std::vector<Json>& results, bool terminal) {
  std::string out;
  for (size_t begin = 0; begin < results.size();) {
    const std::string heading = text(results[begin].at("workload")) + sweep_text(results[begin]);
    std::vector<const Json*> rows;
    size_t end = begin;
    for (; end < results.size() && text(results[end].at("workload")) + sweep_text(results[end]) == heading; ++end) {
      rows.push_back(&results[end]);
    }
    out += (out.empty() ? "" : "\n") + title(results[begin]) + table(rows, terminal);
    begin = end;
  }
  out += summary_table(results);
  return out.empty() ? "nothing was run\n" : out + "\n* best.  >T (m/n): by T us only m of n flows were completed.\n";
}

}  // namespace heddle::cli
