#include "lab/subnet/ibnetdiscover.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace heddle::lab {
namespace {

struct Speed {
  std::string_view name;
  uint64_t lane_bits_per_second;  // of data
};
// FDR: 14.0625 Gb/s × 64/66; the others come out even.
constexpr Speed kSpeeds[] = {{"SDR", 2'000'000'000},    {"DDR", 4'000'000'000},   {"QDR", 8'000'000'000},
                             {"FDR10", 10'000'000'000}, {"FDR", 13'636'363'636},  {"EDR", 25'000'000'000},
                             {"HDR", 50'000'000'000},   {"NDR", 100'000'000'000}, {"XDR", 200'000'000'000}};
constexpr uint32_t kWidths[] = {4, 1, 2, 8, 12};  // as looked for: most cables are 4x

class Writer {
 public:
  Writer(const Topology& topology, const std::vector<bool>& link_up) : topology_(topology), link_up_(link_up) {}

  std::string write() {
    text_ = "# heddle: a fabric as ibnetdiscover prints it\n";
    if (const size_t odd = count_odd_rates(); odd > 0) {
      append("# {} links have rates that InfiniBand does not have; the nearest is written\n", odd);
    }
    for (NodeId node = topology_.host_count; node < topology_.nodes.size(); ++node) write_switch(node);
    for (HostId host = 0; host < topology_.host_count;) host = write_adapter(host);
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  size_t count_odd_rates() const {
    return static_cast<size_t>(std::count_if(topology_.links.begin(), topology_.links.end(), [](const Link& link) {
      return infiniband_rate(infiniband_speed(link.rate))->bits_per_second() != link.rate.bits_per_second();
    }));
  }

  uint32_t most_ports(NodeId node) const {
    uint32_t most = 1;
    for (size_t port = 0; port < topology_.ports[node].size(); ++port) {
      most = std::max(most, port_number(topology_, node, static_cast<PortIndex>(port)));
    }
    return most;
  }

  void write_switch(NodeId node) {
    const uint64_t guid = node_guid(topology_, node);
    append("\nvendid=0x0\ndevid=0x0\nsysimgguid=0x{0:x}\nswitchguid=0x{0:x}({0:x})\n", guid);
    append("Switch\t{} \"{}\"\t\t# \"{}\" base port 0 lid 0 lmc 0\n", most_ports(node),
           node_identifier(topology_, node), topology_.nodes[node].name);
    for (size_t i = 0; i < topology_.ports[node].size(); ++i) {
      const LinkId id = topology_.ports[node][i];
      if (!link_up_[id]) continue;
      const NodeId other = topology_.other_end(id, node);
      append("[{}]\t\"{}\"[{}]{}\t\t# \"{}\" lid 0 {}\n", port_number(topology_, node, static_cast<PortIndex>(i)),
             node_identifier(topology_, other), far_number(id, node), topology_.is_host(other) ? port_guid(other) : "",
             topology_.nodes[other].name, infiniband_speed(topology_.links[id].rate));
    }
  }

  // The channel adapter whose first port is `host`; returns the host after its last. An adapter of one port has one.
  HostId write_adapter(HostId host) {
    const uint64_t guid = node_guid(topology_, host);
    HostId end = host + 1;
    while (end < topology_.host_count && node_guid(topology_, end) == guid) ++end;
    uint32_t ports = 0;
    bool linked = false;
    for (HostId h = host; h < end; ++h) {
      ports = std::max(ports, most_ports(h));
      linked |= link_up_[topology_.ports[h][0]];
    }
    if (!linked) return end;
    append("\nvendid=0x0\ndevid=0x0\nsysimgguid=0x{0:x}\ncaguid=0x{0:x}\n", guid);
    append("Ca\t{} \"{}\"\t\t# \"{}\"\n", ports, node_identifier(topology_, host), topology_.nodes[host].name);
    for (HostId h = host; h < end; ++h) {
      const LinkId id = topology_.ports[h][0];
      if (!link_up_[id]) continue;
      const NodeId leaf = topology_.leaf_of(h);
      append("[{}]{} \t\"{}\"[{}]\t\t# lid 0 lmc 0 \"{}\" lid 0 {}\n", port_number(topology_, h, 0), port_guid(h),
             node_identifier(topology_, leaf), far_number(id, h), topology_.nodes[leaf].name,
             infiniband_speed(topology_.links[id].rate));
    }
    return end;
  }

  std::string port_guid(HostId host) const {
    return fmt::format("({:x})", node_guid(topology_, host) + port_number(topology_, host, 0));
  }

  // The number of the port at the other end of one of `node`'s links.
  uint32_t far_number(LinkId id, NodeId node) const {
    const Link& link = topology_.links[id];
    return link.a == node ? port_number(topology_, link.b, link.b_port) : port_number(topology_, link.a, link.a_port);
  }

  const Topology& topology_;
  const std::vector<bool>& link_up_;
  std::string text_;
};

}  // namespace

uint64_t node_guid(const Topology& topology, NodeId node) {
  constexpr uint64_t kFirst = 0x0248'0000'0000'0000;
  constexpr uint64_t kStride = 0x10;  // ports' GUIDs follow their node's
  return topology.guids.empty() ? kFirst + (uint64_t{node} + 1) * kStride : topology.guids[node];
}

uint32_t port_number(const Topology& topology, NodeId node, PortIndex port) {
  return topology.port_numbers.empty() ? port + 1U : topology.port_numbers[node][port];
}

std::string node_identifier(const Topology& topology, NodeId node) {
  return fmt::format("{}-{:016x}", topology.is_host(node) ? 'H' : 'S', node_guid(topology, node));
}

std::string write_ibnetdiscover(const Topology& topology, const std::vector<bool>& link_up) {
  return Writer(topology, link_up).write();
}

std::optional<Rate> infiniband_rate(std::string_view text) {
  uint32_t width = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), width);
  if (status != std::errc{} || end == text.data() + text.size() || *end != 'x') return std::nullopt;
  if (std::find(std::begin(kWidths), std::end(kWidths), width) == std::end(kWidths)) return std::nullopt;
  const std::string_view name = text.substr(static_cast<size_t>(end - text.data()) + 1);
  for (const Speed& speed : kSpeeds) {
    if (speed.name == name) return Rate(width * speed.lane_bits_per_second);
  }
  return std::nullopt;
}

std::string infiniband_speed(Rate rate) {
  const auto wanted = static_cast<double>(rate.bits_per_second());
  std::string nearest;
  double smallest = 1e300;
  for (const uint32_t width : kWidths) {
    for (const Speed& speed : kSpeeds) {
      if (speed.name == "XDR") continue;  // ibsim 0.10 does not know it
      const uint64_t bits = width * speed.lane_bits_per_second;
      const double distance = std::abs(std::log(static_cast<double>(bits) / wanted));
      // Other widths than the usual one only where they fit exactly, or where nothing else comes near.
      if (bits == rate.bits_per_second()) return fmt::format("{}x{}", width, speed.name);
      if (distance < smallest && (width == 4 || smallest > std::log(1.5))) {
        smallest = distance;
        nearest = fmt::format("{}x{}", width, speed.name);
      }
    }
  }
  return nearest;
}

}  // namespace heddle::lab
