#include "dataplane/ethdev_port.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "dataplane/device_traits.h"
#include "dataplane/eal.h"
#include "net/error.h"

namespace heddle::dataplane {

namespace {

constexpr uint32_t kFrameOverMtu = sizeof(net::EthernetHeader) + sizeof(net::VlanTag);

rte_eth_dev_info info_of(uint16_t id) {
  rte_eth_dev_info info{};
  rte_eth_dev_info_get(id, &info);
  return info;
}

uint16_t rounded(uint16_t wanted, const rte_eth_desc_lim& limit) {
  uint32_t n = wanted;
  if (limit.nb_max != 0) n = std::clamp<uint32_t>(n, limit.nb_min, limit.nb_max);
  if (limit.nb_align > 1) n = (n + limit.nb_align - 1) / limit.nb_align * limit.nb_align;
  return static_cast<uint16_t>(n);
}

// Longest frame (without FCS) the device can carry once set up for `settings.mtu`.
uint32_t longest_frame(const DeviceSettings& settings, const DriverTraits& traits, const rte_eth_dev_info& info) {
  const uint32_t wanted = settings.mtu + kFrameOverMtu;
  if (traits.mtu_outside) {
    // af_packet reports 1518 whatever its ring slots hold: a slot keeps the frame behind the packet-socket header.
    const std::string slot = devarg(settings.devargs, "framesz");
    constexpr uint32_t kPacketSocketHeader = 128;
    const uint32_t room = slot.empty() ? 2048 : static_cast<uint32_t>(std::strtoul(slot.c_str(), nullptr, 10));
    return std::min(wanted, room > kPacketSocketHeader ? room - kPacketSocketHeader : 0);
  }
  const uint32_t most = info.max_rx_pktlen == 0 ? wanted : info.max_rx_pktlen;
  return std::min(wanted, most);
}

DeviceFacts examine(uint16_t id, const DeviceSettings& settings) {
  const rte_eth_dev_info info = info_of(id);
  DeviceFacts facts;
  facts.id = id;
  facts.driver = info.driver_name;
  const DriverTraits& traits = traits_of(facts.driver);

  rte_ether_addr mac{};
  rte_eth_macaddr_get(id, &mac);
  std::memcpy(facts.mac.data(), mac.addr_bytes, facts.mac.size());

  rte_eth_link link{};
  rte_eth_link_get_nowait(id, &link);
  const bool known =
      traits.reports_rate && link.link_speed != RTE_ETH_SPEED_NUM_NONE && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;
  facts.rate = known ? Rate(uint64_t{link.link_speed} * 1'000'000) : Rate::unlimited();

  facts.link_source = settings.link_source.value_or(traits.link_source);
  facts.netdev = settings.netdev;
  if (facts.netdev.empty()) facts.netdev = devarg(settings.devargs, "iface");
  if (facts.netdev.empty() && facts.driver == "net_tap") facts.netdev = "dtap0";

  facts.rx_ring = rounded(settings.rx_ring, info.rx_desc_lim);
  facts.tx_ring = rounded(settings.tx_ring, info.tx_desc_lim);
  facts.ring_packets = uint32_t{facts.rx_ring} + facts.tx_ring;
  facts.max_frame = longest_frame(settings, traits, info);
  facts.buffer_bytes = std::max<uint32_t>(info.min_rx_bufsize, facts.max_frame);
  const std::string slot = devarg(settings.devargs, "framesz");
  if (traits.mtu_outside) {
    facts.buffer_bytes = slot.empty() ? 2048 : static_cast<uint32_t>(std::strtoul(slot.c_str(), nullptr, 10));
  }
  if (devarg(settings.devargs, "infinite_rx") == "1") {
    facts.resident_packets = count_pcap_frames(devarg(settings.devargs, "rx_pcap"));
  }

  if (facts.max_frame < settings.mtu + kFrameOverMtu) {
    facts.cannot.push_back(fmt::format("carries frames up to {} bytes, MTU {} would need {}{}", facts.max_frame,
                                       settings.mtu, settings.mtu + kFrameOverMtu,
                                       traits.mtu_outside ? "; raise framesz (a divisor of blocksz)" : ""));
  }
  if (!traits.cannot.empty()) facts.cannot.emplace_back(traits.cannot);
  if ((info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) == 0 && traits.driver.empty()) {
    facts.cannot.emplace_back("does not check IPv4 checksums; heddle does");
  }
  return facts;
}

// All but the number of queues.
rte_eth_conf configuration(const DeviceSettings& settings, const DeviceFacts& facts) {
  const rte_eth_dev_info info = info_of(facts.id);
  rte_eth_conf conf{};
  conf.rxmode.mtu = traits_of(facts.driver).mtu_outside
                        ? std::min<uint32_t>(settings.mtu, RTE_ETHER_MTU)
                        : std::min<uint32_t>(settings.mtu, facts.max_frame - kFrameOverMtu);
  if (info.max_mtu != 0) conf.rxmode.mtu = std::min<uint32_t>(conf.rxmode.mtu, info.max_mtu);
  conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  return conf;
}

// Of a queue that lies between those of two classes.
constexpr uint16_t kIdleRing = 32;

// Descriptors of each of `count` queues, where `of_class` are those that packets reach: `ring`, or as few as can be.
std::vector<uint16_t> ring_sizes(uint16_t count, const std::array<uint16_t, kTrafficClasses>& of_class, uint16_t ring,
                                 const rte_eth_desc_lim& limit) {
  std::vector<uint16_t> sizes(count, rounded(kIdleRing, limit));
  for (const uint16_t queue : of_class) sizes[queue] = ring;
  return sizes;
}

}  // namespace

EthdevPort::EthdevPort(const DeviceSettings& settings) : settings_(settings) {
  const std::string name = device_name(settings.devargs);
  uint16_t id = 0;
  if (rte_eth_dev_get_port_by_name(name.c_str(), &id) == 0) {
    throw_failed("port {}: device {} is already in use", settings.name, name);
  }
  const int result = rte_dev_probe(settings.devargs.c_str());
  if (result != 0 || rte_eth_dev_get_port_by_name(name.c_str(), &id) != 0) {
    const std::string said = last_dpdk_message();
    throw_failed("port {}: cannot open device {}: {}", settings.name, settings.devargs,
                 said.empty() ? rte_strerror(-result) : said);
  }
  probed_ = true;
  facts_ = examine(id, settings);
}

EthdevPort::EthdevPort(EthdevPort&& other) noexcept
    : settings_(std::move(other.settings_)),
      facts_(std::move(other.facts_)),
      nic_(std::move(other.nic_)),
      nic_pfc_(std::move(other.nic_pfc_)),
      probed_(std::exchange(other.probed_, false)),
      started_(std::exchange(other.started_, false)) {}

EthdevPort::~EthdevPort() {
  stop();
  if (probed_) rte_eth_dev_close(facts_.id);
}

std::string EthdevPort::let_nic_do_pfc(uint8_t lossless, uint16_t quanta, std::unique_ptr<NicPfcDevice> nic) {
  nic_ = nic != nullptr ? std::move(nic) : std::make_unique<EthdevNicPfc>(facts_.id);
  nic_pfc_ = std::make_unique<NicPfc>(*nic_, lossless, quanta);
  if (std::string why = nic_pfc_->configure(configuration(settings_, facts_)); !why.empty()) return why;
  const ClassQueues& queues = nic_pfc_->queues();
  const rte_eth_dev_info info = info_of(facts_.id);
  facts_.ring_packets = 0;
  for (const uint16_t ring : ring_sizes(queues.rx_count, queues.rx, facts_.rx_ring, info.rx_desc_lim))
    facts_.ring_packets += ring;
  for (const uint16_t ring : ring_sizes(queues.tx_count, queues.tx, facts_.tx_ring, info.tx_desc_lim))
    facts_.ring_packets += ring;
  facts_.by_class = queues;
  return "";
}

void EthdevPort::start(rte_mempool* pool) {
  const auto check = [this](int result, const char* what) {
    if (result >= 0) return;
    const std::string said = last_dpdk_message();
    throw_failed("port {}: cannot {}: {}{}{}", settings_.name, what, rte_strerror(-result), said.empty() ? "" : ": ",
                 said);
  };
  const rte_eth_dev_info info = info_of(facts_.id);
  const rte_eth_conf conf = configuration(settings_, facts_);
  const ClassQueues queues = facts_.by_class.value_or(ClassQueues{.rx_count = 1, .tx_count = 1});
  if (!facts_.by_class) check(rte_eth_dev_configure(facts_.id, 1, 1, &conf), "configure the device");

  const int socket = rte_eth_dev_socket_id(facts_.id);
  const auto node = static_cast<unsigned>(socket);
  const std::vector<uint16_t> rx_rings = ring_sizes(queues.rx_count, queues.rx, facts_.rx_ring, info.rx_desc_lim);
  for (uint16_t queue = 0; queue < queues.rx_count; ++queue) {
    rte_eth_rxconf rx = info.default_rxconf;
    rx.rx_drop_en = 1;  // one full queue must not stop the others, unless the NIC pauses its sender because of it
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      if (queues.rx[tc] == queue && ((queues.lossless >> tc) & 1U) != 0) rx.rx_drop_en = 0;
    }
    check(rte_eth_rx_queue_setup(facts_.id, queue, rx_rings[queue], node, &rx, pool), "set up its receive queues");
  }
  const std::vector<uint16_t> tx_rings = ring_sizes(queues.tx_count, queues.tx, facts_.tx_ring, info.tx_desc_lim);
  for (uint16_t queue = 0; queue < queues.tx_count; ++queue) {
    rte_eth_txconf tx = info.default_txconf;
    tx.offloads = conf.txmode.offloads;
    check(rte_eth_tx_queue_setup(facts_.id, queue, tx_rings[queue], node, &tx), "set up its transmit queues");
  }
  check(rte_eth_dev_start(facts_.id), "start the device");
  started_ = true;
  if (nic_pfc_ != nullptr) {
    if (const std::string why = nic_pfc_->start(); !why.empty()) {
      throw_failed("port {}: cannot do pfc 'ethdev': {}", settings_.name, why);
    }
  }
  // A router filters by MAC itself (several MACs, control frames); a driver that cannot do this delivers all anyway.
  rte_eth_promiscuous_enable(facts_.id);
}

void EthdevPort::stop() {
  if (std::exchange(started_, false)) rte_eth_dev_stop(facts_.id);
}

EthdevPort::DeviceCounters EthdevPort::device_counters() const {
  rte_eth_stats stats{};
  if (rte_eth_stats_get(facts_.id, &stats) != 0) return {};
  return {.rx_packets = stats.ipackets,
          .tx_packets = stats.opackets,
          .rx_missed = stats.imissed,
          .rx_errors = stats.ierrors,
          .rx_no_buffer = stats.rx_nombuf,
          .tx_errors = stats.oerrors};
}

std::string EthdevPort::receive_mac_control() {
  if (!traits_of(facts_.driver).driver.empty()) return "";  // virtual: every frame is delivered as it is
  rte_eth_fc_conf flow_control{};
  int result = rte_eth_dev_flow_ctrl_get(facts_.id, &flow_control);
  if (result == 0) {
    flow_control.mode = RTE_ETH_FC_NONE;
    flow_control.mac_ctrl_frame_fwd = 1;
    result = rte_eth_dev_flow_ctrl_set(facts_.id, &flow_control);
  }
  if (result == 0) return "";
  return fmt::format("driver {} does not deliver MAC control frames ({})", facts_.driver, rte_strerror(-result));
}

NicPauses EthdevPort::nic_pauses(unsigned traffic_class) const {
  return nic_pfc_ == nullptr ? NicPauses{} : nic_pfc_->pauses(traffic_class);
}

bool EthdevPort::driver_link_up() const {
  rte_eth_link link{};
  return rte_eth_link_get_nowait(facts_.id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

}  // namespace heddle::dataplane
