// The `events` section of a scenario: what happens to links during a run.
#include <fmt/format.h>

#include "lab/scenario/parts.h"

namespace heddle::lab {

using config::Map;
using config::one_of;
using config::Value;

const Words<LinkDirection>& direction_words() {
  static const Words<LinkDirection> words{
      {"both", LinkDirection::kBoth}, {"out", LinkDirection::kAToB}, {"in", LinkDirection::kBToA}};
  return words;
}

namespace {

const Words<LinkEvent::Kind> kStateWords{{"down", LinkEvent::Kind::kDown}, {"up", LinkEvent::Kind::kUp}};

// A time, or a share.
void read_at(const Value& value, EventSpec& event) {
  const std::string& text = value.scalar("a time such as 1ms, or a share of the lower bound such as 40%");
  if (text.ends_with('%')) {
    event.at_share = config::share()(value);
  } else {
    event.at = config::duration(0, kMaxDelay)(value);
  }
}

EventSpec read_event(const Value& value, bool may_be_share) {
  const Map map = value.map({"at", "link", "state", "rate", "loss", "direction"});
  EventSpec event;
  event.place = value.place().text();
  if (may_be_share && map.has("at")) {
    read_at(map.at("at"), event);
  } else {
    event.at = map.required("at", config::duration(0, kMaxDelay));
  }
  event.link = map.required("link", config::text(200));
  if (map.has("state") + map.has("rate") + map.has("loss") != 1) {
    value.refuse_found("an event without one change", "one of state, rate and loss");
  }
  if (map.has("state")) event.kind = map.required("state", one_of(kStateWords));
  if (map.has("rate")) {
    event.kind = LinkEvent::Kind::kRate;
    event.rate = map.required("rate", config::rate(false));
    if (event.rate.bits_per_second() > kMaxLinkRate.bits_per_second()) {
      map.at("rate").refuse("a rate from 1M to 1600G such as 100G or 25Gbps");
    }
  }
  if (map.has("loss")) {
    event.kind = LinkEvent::Kind::kLoss;
    event.loss = map.required("loss", read_loss);
  }
  event.direction = map.optional("direction", LinkDirection::kBoth, one_of(direction_words()));
  if (map.has("direction") && map.has("state")) {
    map.at("direction").refuse("direction beside rate or loss; a link is down or up in both");
  }
  return event;
}

}  // namespace

std::vector<EventSpec> read_events(const config::List& items) {
  std::vector<EventSpec> events;
  events.reserve(items.size());
  for (const Value& item : items) events.push_back(read_event(item, false));
  return events;
}

std::vector<EventSpec> read_condition(const config::List& items) {
  std::vector<EventSpec> events;
  events.reserve(items.size());
  for (const Value& item : items) events.push_back(read_event(item, true));
  return events;
}

Json events_json(const std::vector<EventSpec>& events) {
  Json json = Json::array();
  for (const EventSpec& event : events) {
    const std::string at =
        event.at_share ? fmt::format("{:.12g}%", *event.at_share * 100) : config::print_duration(event.at);
    Json item{{"at", at}, {"link", event.link}};
    switch (event.kind) {
      case LinkEvent::Kind::kDown:
      case LinkEvent::Kind::kUp:
        item["state"] = word_for(kStateWords, event.kind);
        break;
      case LinkEvent::Kind::kRate:
        item["rate"] = config::print_rate(event.rate);
        item["direction"] = word_for(direction_words(), event.direction);
        break;
      case LinkEvent::Kind::kLoss:
        item["loss"] = event.loss;
        item["direction"] = word_for(direction_words(), event.direction);
        break;
    }
    json.push_back(std::move(item));
  }
  return json;
}

}  // namespace heddle::lab
