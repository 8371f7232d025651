#include "dataplane/nic_pfc.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include <fmt/format.h>
#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_flow.h>

namespace heddle::dataplane {

namespace {

static_assert(RTE_ETH_DCB_NUM_TCS == kTrafficClasses && RTE_ETH_DCB_NUM_USER_PRIORITIES == kTrafficClasses);

// Names of the counters of one class, `{}` its number; empty: not counted.
struct CounterNames {
  std::string_view rx_pause;
  std::string_view rx_resume;
  std::string_view tx_pause;
  std::string_view tx_resume;
};
constexpr std::array<CounterNames, 3> kCounterNames{{
    // ixgbe, i40e
    {"rx_priority{}_xoff_packets", "rx_priority{}_xon_packets", "tx_priority{}_xoff_packets",
     "tx_priority{}_xon_packets"},
    // txgbe
    {"[p{}]rx_up_xoff_packets", "[p{}]rx_up_xon_packets", "[p{}]tx_up_xoff_packets", "[p{}]tx_up_xon_packets"},
    // hns3: pauses and resumes are one number
    {"mac_rx_pfc_pri{}_pkt_num", "", "mac_tx_pfc_pri{}_pkt_num", ""},
}};

std::string reason(int result) { return rte_strerror(-result); }

}  // namespace

NicPfc::NicPfc(NicPfcDevice& device, uint8_t lossless, uint16_t quanta) : device_(device), quanta_(quanta) {
  queues_.lossless = lossless;
}

std::string NicPfc::configure(rte_eth_conf conf) {
  const rte_eth_dev_info info = device_.info();
  if (info.max_rx_queues < kTrafficClasses || info.max_tx_queues < kTrafficClasses) {
    return fmt::format("driver {} has {} receive and {} transmit queues, PFC by the NIC takes {} of each",
                       info.driver_name, info.max_rx_queues, info.max_tx_queues, kTrafficClasses);
  }
  rte_eth_pfc_queue_info per_queue{};
  per_queue_ = device_.queue_pfc_info(per_queue) == 0;
  if (!per_queue_) return configure_dcb(conf);
  if (per_queue.tc_max < kTrafficClasses || per_queue.mode_capa != RTE_ETH_FC_FULL) {
    return fmt::format("driver {} does PFC for {} classes{}, wanted are {} in both directions", info.driver_name,
                       per_queue.tc_max, per_queue.mode_capa == RTE_ETH_FC_FULL ? "" : " in one direction",
                       kTrafficClasses);
  }
  for (uint16_t tc = 0; tc < kTrafficClasses; ++tc) queues_.rx[tc] = queues_.tx[tc] = tc;
  queues_.rx_count = queues_.tx_count = kTrafficClasses;
  const int result = device_.configure(queues_.rx_count, queues_.tx_count, conf);
  if (result == 0) return "";
  return fmt::format("driver {} cannot be configured with a queue per class: {}", info.driver_name, reason(result));
}

// Where a class's queues lie depends on the driver, and with some on how many there are: it is asked, and given more if
// they lie further out.
std::string NicPfc::configure_dcb(rte_eth_conf& conf) {
  const rte_eth_dev_info info = device_.info();
  rte_eth_dcb_info dcb{};
  if (const int result = device_.dcb_info(dcb); result != 0) {
    return fmt::format("driver {} has neither PFC per queue nor DCB: {}", info.driver_name, reason(result));
  }
  conf.rxmode.mq_mode = RTE_ETH_MQ_RX_DCB;
  conf.txmode.mq_mode = RTE_ETH_MQ_TX_DCB;
  conf.rx_adv_conf.dcb_rx_conf.nb_tcs = RTE_ETH_8_TCS;
  conf.tx_adv_conf.dcb_tx_conf.nb_tcs = RTE_ETH_8_TCS;
  for (uint8_t priority = 0; priority < kTrafficClasses; ++priority) {
    conf.rx_adv_conf.dcb_rx_conf.dcb_tc[priority] = priority;
    conf.tx_adv_conf.dcb_tx_conf.dcb_tc[priority] = priority;
  }
  conf.dcb_capability_en = RTE_ETH_DCB_PG_SUPPORT | RTE_ETH_DCB_PFC_SUPPORT;
  queues_.rx_count = queues_.tx_count = kTrafficClasses;
  constexpr int kTries = 3;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (queues_.rx_count > info.max_rx_queues || queues_.tx_count > info.max_tx_queues) break;
    const uint16_t rx_before = queues_.rx_count;
    const uint16_t tx_before = queues_.tx_count;
    const int result = device_.configure(rx_before, tx_before, conf);
    if (result != 0) {
      return fmt::format("driver {} cannot be configured with {} DCB classes: {}", info.driver_name, kTrafficClasses,
                         reason(result));
    }
    if (std::string why = read_dcb_queues(); !why.empty()) return why;
    if (queues_.rx_count <= rx_before && queues_.tx_count <= tx_before) {
      queues_.rx_count = rx_before;
      queues_.tx_count = tx_before;
      return "";
    }
  }
  return fmt::format("driver {} does not give each class queues of its own within its {} receive and {} transmit ones",
                     info.driver_name, info.max_rx_queues, info.max_tx_queues);
}

// The first queue of each class, and how many that makes.
std::string NicPfc::read_dcb_queues() {
  rte_eth_dcb_info dcb{};
  if (const int result = device_.dcb_info(dcb); result != 0) {
    return fmt::format("driver {} does not tell the queues of its DCB classes: {}", driver(), reason(result));
  }
  bool own = dcb.nb_tcs == kTrafficClasses;
  queues_.rx_count = queues_.tx_count = 0;
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    queues_.rx[tc] = dcb.tc_queue.tc_rxq[0][tc].base;
    queues_.tx[tc] = dcb.tc_queue.tc_txq[0][tc].base;
    queues_.rx_count = std::max<uint16_t>(queues_.rx_count, static_cast<uint16_t>(queues_.rx[tc] + 1));
    queues_.tx_count = std::max<uint16_t>(queues_.tx_count, static_cast<uint16_t>(queues_.tx[tc] + 1));
    own = own && dcb.prio_tc[tc] == tc;
    for (unsigned other = 0; other < tc; ++other) {
      own = own && queues_.rx[other] != queues_.rx[tc] && queues_.tx[other] != queues_.tx[tc];
    }
  }
  if (own) return "";
  return fmt::format("driver {} has {} DCB classes, not one for each of {} priorities", driver(), dcb.nb_tcs,
                     kTrafficClasses);
}

std::string NicPfc::start() { return per_queue_ ? pause_queues() : pause_priorities(); }

// Watermarks are the device's own matter, in units of its own: those it has, halved until they fit the share of its
// memory that a class gets.
std::string NicPfc::pause_priorities() {
  rte_eth_fc_conf present{};
  if (device_.flow_control(present) != 0) present = {};
  for (uint8_t tc = 0; tc < kTrafficClasses; ++tc) {
    if (((queues_.lossless >> tc) & 1U) == 0) continue;
    rte_eth_pfc_conf pfc{};
    pfc.priority = tc;
    pfc.fc.mode = RTE_ETH_FC_FULL;
    pfc.fc.pause_time = quanta_;
    pfc.fc.send_xon = 1;
    pfc.fc.autoneg = present.autoneg;
    pfc.fc.high_water = present.high_water;
    pfc.fc.low_water = present.low_water;
    int result = device_.set_priority_pfc(pfc);
    while (result == -EINVAL && pfc.fc.low_water > 1) {
      pfc.fc.high_water /= 2;
      pfc.fc.low_water /= 2;
      result = device_.set_priority_pfc(pfc);
    }
    if (result != 0) return fmt::format("driver {} does no PFC for class {}: {}", driver(), tc, reason(result));
  }
  return "";
}

std::string NicPfc::pause_queues() {
  for (uint8_t tc = 0; tc < kTrafficClasses; ++tc) {
    if (const int result = device_.steer(tc, queues_.rx[tc]); result != 0) {
      return fmt::format("driver {} cannot lead frames of PCP {} to a queue: {}", driver(), tc, reason(result));
    }
    if (((queues_.lossless >> tc) & 1U) == 0) continue;
    rte_eth_pfc_queue_conf pfc{};
    pfc.mode = RTE_ETH_FC_FULL;
    pfc.rx_pause.tx_qid = queues_.tx[tc];
    pfc.rx_pause.tc = tc;
    pfc.tx_pause.pause_time = quanta_;
    pfc.tx_pause.rx_qid = queues_.rx[tc];
    pfc.tx_pause.tc = tc;
    const int result = device_.set_queue_pfc(pfc);
    if (result != 0) return fmt::format("driver {} does no PFC for class {}: {}", driver(), tc, reason(result));
  }
  return "";
}

NicPauses NicPfc::pauses(unsigned traffic_class) const {
  const auto read = [&](std::string_view name) -> std::optional<uint64_t> {
    if (name.empty()) return std::nullopt;
    return device_.extended_counter(fmt::format(fmt::runtime(name), traffic_class));
  };
  for (const CounterNames& names : kCounterNames) {
    const std::optional<uint64_t> rx_pause = read(names.rx_pause);
    if (!rx_pause) continue;
    return {rx_pause, read(names.rx_resume), read(names.tx_pause), read(names.tx_resume)};
  }
  return {};
}

// ethdev

rte_eth_dev_info EthdevNicPfc::info() const {
  rte_eth_dev_info info{};
  rte_eth_dev_info_get(id_, &info);
  return info;
}

int EthdevNicPfc::configure(uint16_t rx_queues, uint16_t tx_queues, const rte_eth_conf& conf) {
  return rte_eth_dev_configure(id_, rx_queues, tx_queues, &conf);
}

int EthdevNicPfc::dcb_info(rte_eth_dcb_info& dcb) const { return rte_eth_dev_get_dcb_info(id_, &dcb); }

int EthdevNicPfc::queue_pfc_info(rte_eth_pfc_queue_info& info) const {
  return rte_eth_dev_priority_flow_ctrl_queue_info_get(id_, &info);
}

int EthdevNicPfc::flow_control(rte_eth_fc_conf& conf) const { return rte_eth_dev_flow_ctrl_get(id_, &conf); }

int EthdevNicPfc::set_priority_pfc(rte_eth_pfc_conf& conf) { return rte_eth_dev_priority_flow_ctrl_set(id_, &conf); }

int EthdevNicPfc::set_queue_pfc(rte_eth_pfc_queue_conf& conf) {
  return rte_eth_dev_priority_flow_ctrl_queue_configure(id_, &conf);
}

int EthdevNicPfc::steer(unsigned pcp, uint16_t queue) {
  constexpr unsigned kPcpBits = 13;  // below it in the tag: DEI and VLAN id (802.1Q 9.6)
  rte_flow_attr attributes{};
  attributes.ingress = 1;
  rte_flow_item_vlan tag{};
  rte_flow_item_vlan mask{};
  tag.tci = rte_cpu_to_be_16(static_cast<uint16_t>(pcp << kPcpBits));
  mask.tci = rte_cpu_to_be_16(static_cast<uint16_t>(7U << kPcpBits));
  const std::array<rte_flow_item, 3> pattern{{{RTE_FLOW_ITEM_TYPE_ETH, nullptr, nullptr, nullptr},
                                              {RTE_FLOW_ITEM_TYPE_VLAN, &tag, nullptr, &mask},
                                              {RTE_FLOW_ITEM_TYPE_END, nullptr, nullptr, nullptr}}};
  const rte_flow_action_queue to{queue};
  const std::array<rte_flow_action, 2> actions{
      {{RTE_FLOW_ACTION_TYPE_QUEUE, &to}, {RTE_FLOW_ACTION_TYPE_END, nullptr}}};
  rte_flow_error error{};
  if (rte_flow_create(id_, &attributes, pattern.data(), actions.data(), &error) != nullptr) return 0;
  return rte_errno == 0 ? -EINVAL : -rte_errno;
}

std::optional<uint64_t> EthdevNicPfc::extended_counter(const std::string& name) const {
  uint64_t id = 0;
  uint64_t value = 0;
  if (rte_eth_xstats_get_id_by_name(id_, name.c_str(), &id) != 0) return std::nullopt;
  if (rte_eth_xstats_get_by_id(id_, &id, &value, 1) != 1) return std::nullopt;
  return value;
}

}  // namespace heddle::dataplane
