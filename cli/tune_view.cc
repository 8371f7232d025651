#include "cli/tune_view.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "cli/tables.h"
#include "config/units.h"
#include "net/error.h"

namespace heddle::cli {

namespace {

// "30m", "2km", "0.5m".
double metres_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size() - end);
  const double factor = unit == "m" ? 1 : unit == "km" ? 1000 : 0;
  if (error != std::errc() || factor == 0 || !(value >= 0) || value * factor > 100'000) {
    throw_bad_input("--cable: found '{}'; accepted: a length such as 30m or 2km, up to 100km", text);
  }
  return value * factor;
}

Duration time_of(const char* option, const std::string& text) {
  const auto time = config::parse_duration(text);
  if (!time || *time > kSecond)
    throw_bad_input("{}: found '{}'; accepted: a time such as 20us, up to 1s", option, text);
  return *time;
}

void check_classes(const std::vector<unsigned>& classes) {
  for (size_t i = 0; i < classes.size(); ++i) {
    const bool twice = std::find(classes.begin(), classes.begin() + static_cast<std::ptrdiff_t>(i), classes[i]) !=
                       classes.begin() + static_cast<std::ptrdiff_t>(i);
    if (classes[i] > 7 || twice) {
      throw_bad_input("--lossless: found {}{}; accepted: classes from 0 to 7, each once", classes[i],
                      twice ? " twice" : "");
    }
  }
}

std::vector<Row> rows_of(const std::vector<flowctl::HeadroomStep>& steps) {
  std::vector<Row> rows;
  rows.reserve(steps.size());
  for (const flowctl::HeadroomStep& step : steps) rows.push_back({step.what, std::to_string(step.bytes), step.how});
  return rows;
}

Json json_of_steps(const std::vector<flowctl::HeadroomStep>& steps) {
  Json list = Json::array();
  for (const flowctl::HeadroomStep& step : steps) {
    list.push_back({{"what", step.what}, {"bytes", step.bytes}, {"how", step.how}});
  }
  return list;
}

// Whole nanoseconds, rounded down: the switch must not ask for more headroom than we give.
Duration reaction_of(const TuneAnswer& answer) { return answer.tuning.headroom.reaction / kNanosecond * kNanosecond; }

}  // namespace

TuneAnswer answer(const TuneOptions& options) {
  TuneAnswer answer;
  answer.options = options;
  const auto rate = config::parse_rate(options.port);
  if (!rate || rate->is_unlimited()) throw_bad_input("--port: found '{}'; accepted: a rate such as 100G", options.port);
  if (options.mtu < 576 || options.mtu > 9600) {
    throw_bad_input("--mtu: found {}; accepted: a whole number from 576 to 9600", options.mtu);
  }
  if (options.ports == 0 || options.ports > 1024) {
    throw_bad_input("--ports: found {}; accepted: a whole number from 1 to 1024", options.ports);
  }
  const auto buffer = config::parse_bytes(options.buffer);
  if (!buffer) throw_bad_input("--buffer: found '{}'; accepted: {}", options.buffer, config::kBytesForms);
  check_classes(options.lossless);

  flowctl::HeadroomInput& port = answer.input.port;
  port.rate = *rate;
  port.cable_metres = metres_of(options.cable);
  port.frame_bytes = options.mtu + 22;  // Ethernet header and two VLAN tags
  port.reaction = time_of("--poll", options.poll);
  if (!options.peer.empty()) port.peer_reaction = time_of("--peer", options.peer);
  port.burst = options.burst;
  port.tx_ring = options.tx_ring;
  answer.input.ports = options.ports;
  answer.input.lossless_classes = static_cast<uint32_t>(options.lossless.size());
  answer.input.workers = options.workers;
  answer.input.buffer_bytes = *buffer;
  answer.tuning = flowctl::tune(answer.input);
  return answer;
}

std::string yaml_of(const TuneAnswer& answer) {
  const flowctl::Tuning& t = answer.tuning;
  std::string yaml = fmt::format("buffer: {{size: {}}}\nclasses:\n  queues:\n", answer.options.buffer);
  for (const unsigned tc : answer.options.lossless) {
    yaml += fmt::format(
        "    {}: {{lossless: true, reserved: {}, alpha: {}, xon_offset: {}, headroom: {},\n"
        "        ecn: {{kmin: {}, kmax: {}, pmax: {}}}}}\n",
        tc, t.reserved, t.alpha, t.xon_offset, t.headroom.bytes, t.kmin, t.kmax, config::print_share(t.pmax));
  }
  return yaml + fmt::format("# in every item of ports:\n#   mtu: {}\n#   pfc: frames\n#   pfc_reaction: {}\n",
                            answer.options.mtu, config::print_duration(reaction_of(answer)));
}

std::string page_of(const TuneAnswer& answer) {
  std::vector<Row> rows{{"headroom of a lossless class at a port", "bytes", "how"}};
  for (Row& row : rows_of(answer.tuning.headroom.steps)) rows.push_back(std::move(row));
  rows.push_back({"= headroom", std::to_string(answer.tuning.headroom.bytes), "rounded up to a KiB"});
  std::vector<Row> rest{{"buffer and thresholds", "bytes", "how"}};
  for (Row& row : rows_of(answer.tuning.arithmetic)) rest.push_back(std::move(row));
  return text_table(rows) + "\n" + text_table(rest) + "\n" + yaml_of(answer);
}

Json json_of(const TuneAnswer& answer) {
  const flowctl::Tuning& t = answer.tuning;
  return {{"headroom_bytes", t.headroom.bytes},
          {"reserved_bytes", t.reserved},
          {"kept_aside_bytes", t.kept_aside},
          {"shared_bytes", t.shared},
          {"alpha", t.alpha},
          {"xoff_bytes", {{"one_group", t.xoff_alone}, {"all_groups", t.xoff_all}}},
          {"xon_offset_bytes", t.xon_offset},
          {"ecn", {{"kmin_bytes", t.kmin}, {"kmax_bytes", t.kmax}, {"pmax", t.pmax}}},
          {"pfc_reaction_us", to_microseconds(reaction_of(answer))},
          {"headroom_steps", json_of_steps(t.headroom.steps)},
          {"buffer_steps", json_of_steps(t.arithmetic)},
          {"yaml", yaml_of(answer)}};
}

}  // namespace heddle::cli
