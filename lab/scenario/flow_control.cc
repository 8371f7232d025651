// `fabric.buffer`, `lossless`, `pfc`, `watchdog` and `ecn` of a scenario.
#include "config/flow_control.h"

#include "config/units.h"
#include "lab/scenario/parts.h"

namespace heddle::lab {
namespace {

using config::integer;
using config::kMaxBuffer;
using config::Map;
using config::Value;

uint8_t read_class_set(const Value& value) {
  unsigned classes = 0;
  for (const Value& item : value.list(0, kTrafficClasses)) {
    const unsigned bit = 1U << integer<unsigned>(0, kTrafficClasses - 1)(item);
    if ((classes & bit) != 0) item.refuse("each class once", "a second time");
    classes |= bit;
  }
  return static_cast<uint8_t>(classes);
}

void read_pfc(const Value& value, FlowControlSettings& settings) {
  if (value.is_word("none")) {
    settings.pfc = false;
    return;
  }
  const Map map = value.map({"alpha", "xoff", "xon_offset", "headroom", "quanta"});
  if (map.has("alpha") && map.has("xoff")) map.at("alpha").refuse("alpha or xoff, not both", "beside xoff");
  if (map.has("alpha")) settings.xoff = dataplane::Threshold::dynamic(config::read_alpha(map.at("alpha")));
  if (map.has("xoff")) settings.xoff = dataplane::Threshold::fixed(config::bytes(0, kMaxBuffer)(map.at("xoff")));
  settings.xon_offset = map.optional("xon_offset", settings.xon_offset, config::bytes(0, kMaxBuffer));
  settings.quanta = map.optional("quanta", settings.quanta, integer<uint16_t>(2, 0xffff));
  const Value headroom = map.at("headroom");
  if (!headroom.is_missing() && !headroom.is_word("auto")) {
    settings.headroom = config::bytes(0, kMaxBuffer)(headroom);
  }
}

void read_ecn(const Value& value, FlowControlSettings& settings) {
  if (value.is_word("none")) return;
  const Map map = value.map({"kmin", "kmax", "pmax", "classes"});
  settings.ecn = config::read_curve(map);
  if (map.has("classes")) settings.ecn_classes = read_class_set(map.at("classes"));
}

}  // namespace

void read_flow_control(const Map& section, FlowControlSettings& settings) {
  const Value buffer = section.at("buffer");
  if (!buffer.is_missing() && !buffer.is_word("unlimited")) {
    constexpr std::string_view accepted = "unlimited, or a size such as 9MB, from 100kB to 4GB";
    const auto bytes = config::parse_bytes(buffer.scalar(accepted));
    if (!bytes || *bytes < 100'000 || *bytes > kMaxBuffer) buffer.refuse(accepted);
    settings.buffer = *bytes;
  }
  const Value port_buffer = section.at("port_buffer");
  if (!port_buffer.is_missing() && !port_buffer.is_word("none")) {
    constexpr std::string_view accepted = "none, or a size such as 128KiB, from 20kB to 1GB";
    const auto bytes = config::parse_bytes(port_buffer.scalar(accepted));
    if (!bytes || *bytes < 20'000 || *bytes > 1'000'000'000) port_buffer.refuse(accepted);
    if (settings.buffer != 0) port_buffer.refuse("buffer or port_buffer, not both", "beside buffer");
    settings.port_buffer = *bytes;
  }
  if (section.has("lossless")) settings.lossless = read_class_set(section.at("lossless"));
  if (!settings.is_limited() && settings.lossless != 0) {
    section.at("lossless").refuse("buffer: SIZE beside it", "without a limited buffer");
  }
  if (section.has("pfc")) read_pfc(section.at("pfc"), settings);
  if (section.has("watchdog")) {
    settings.watchdog = config::read_watchdog(section.at("watchdog"), config::ClockKind::kVirtual);
    if (settings.watchdog && !settings.pauses()) {
      section.at("watchdog").refuse("none, or lossless classes with pfc beside it", "where nothing is ever paused");
    }
  }
  if (section.has("ecn")) read_ecn(section.at("ecn"), settings);
}

Json class_set_json(uint8_t classes) {
  Json json = Json::array();
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    if (((classes >> tc) & 1U) != 0) json.push_back(tc);
  }
  return json;
}

void put_flow_control(const FlowControlSettings& settings, Json& json) {
  json["buffer"] = settings.buffer == 0 ? "unlimited" : config::print_bytes(settings.buffer);
  json["port_buffer"] = settings.port_buffer == 0 ? "none" : config::print_bytes(settings.port_buffer);
  json["lossless"] = class_set_json(settings.lossless);
  if (settings.pfc) {
    Json pfc;
    if (settings.xoff.is_dynamic()) {
      pfc["alpha"] = settings.xoff.alpha_256ths / 256.0;
    } else {
      pfc["xoff"] = config::print_bytes(settings.xoff.bytes);
    }
    pfc["xon_offset"] = config::print_bytes(settings.xon_offset);
    pfc["headroom"] = settings.headroom ? config::print_bytes(*settings.headroom) : "auto";
    pfc["quanta"] = settings.quanta;
    json["pfc"] = std::move(pfc);
  } else {
    json["pfc"] = "none";
  }
  json["watchdog"] = config::watchdog_json(settings.watchdog);
  json["ecn"] = "none";
  if (settings.ecn.is_on()) {
    json["ecn"] = {{"kmin", config::print_bytes(settings.ecn.min_bytes)},
                   {"kmax", config::print_bytes(settings.ecn.max_bytes)},
                   {"pmax", config::print_share(settings.ecn.max_probability)},
                   {"classes", class_set_json(settings.ecn_classes)}};
  }
}

}  // namespace heddle::lab
