// PFC by the NIC, with devices that stand in for one: what each kind of driver is asked, and every way it may refuse.
// No NIC was at hand: that the real ones do what they are asked is not tested.
#include "dataplane/nic_pfc.h"

#include <cerrno>
#include <map>

#include <gtest/gtest.h>

#include "dataplane/ethdev_port.h"
#include "net/error.h"
#include "tests/support/eal.h"

namespace heddle::dataplane {
namespace {

// As ixgbe, i40e and cnxk answer in DPDK 22.11, with everything that may go wrong.
class FakeNic final : public NicPfcDevice {
 public:
  rte_eth_dev_info info() const override {
    rte_eth_dev_info info{};
    info.driver_name = "net_fake";
    info.max_rx_queues = max_rx;
    info.max_tx_queues = max_tx;
    return info;
  }
  int configure(uint16_t rx, uint16_t tx, const rte_eth_conf& conf) override {
    if (configure_result != 0) return configure_result;
    configured.push_back({rx, tx});
    last = conf;
    return 0;
  }
  int dcb_info(rte_eth_dcb_info& dcb) const override {
    if (!has_dcb) return -ENOTSUP;
    dcb.nb_tcs = configured.empty() ? 1 : classes;
    for (uint8_t tc = 0; tc < kTrafficClasses; ++tc) {
      dcb.prio_tc[tc] = tc;
      dcb.tc_queue.tc_rxq[0][tc].base = static_cast<uint16_t>(tc * rx_stride);
      dcb.tc_queue.tc_txq[0][tc].base = static_cast<uint16_t>(tc * tx_stride);
    }
    return 0;
  }
  int queue_pfc_info(rte_eth_pfc_queue_info& info) const override {
    if (!per_queue) return -ENOTSUP;
    info = *per_queue;
    return 0;
  }
  int flow_control(rte_eth_fc_conf& conf) const override {
    conf.high_water = high_water;
    conf.low_water = high_water / 2;
    return 0;
  }
  int set_priority_pfc(rte_eth_pfc_conf& conf) override {
    if (set_result != 0) return set_result;
    if (conf.fc.high_water > most_water) return -EINVAL;
    priorities.push_back(conf);
    return 0;
  }
  int set_queue_pfc(rte_eth_pfc_queue_conf& conf) override {
    if (set_result != 0) return set_result;
    per_queues.push_back(conf);
    return 0;
  }
  int steer(unsigned pcp, uint16_t queue) override {
    if (steer_result != 0) return steer_result;
    steered[pcp] = queue;
    return 0;
  }
  std::optional<uint64_t> extended_counter(const std::string& name) const override {
    const auto it = counters.find(name);
    return it == counters.end() ? std::nullopt : std::optional(it->second);
  }

  uint16_t max_rx = 128;
  uint16_t max_tx = 128;
  bool has_dcb = true;
  uint8_t classes = 8;
  unsigned rx_stride = 16;
  unsigned tx_stride = 8;
  std::optional<rte_eth_pfc_queue_info> per_queue;
  uint32_t high_water = 0x80;  // ixgbe's, in KiB
  uint32_t most_water = 62;
  int configure_result = 0;
  int set_result = 0;
  int steer_result = 0;
  std::map<std::string, uint64_t> counters;

  std::vector<std::pair<uint16_t, uint16_t>> configured;
  rte_eth_conf last{};
  std::vector<rte_eth_pfc_conf> priorities;
  std::vector<rte_eth_pfc_queue_conf> per_queues;
  std::map<unsigned, uint16_t> steered;
};

constexpr uint8_t kLossless = 1U << 3U | 1U << 5U;
constexpr rte_eth_pfc_queue_info kEightBothWays{8, RTE_ETH_FC_FULL};

TEST(NicPfc, DcbWithQueuesFarApart) {  // as ixgbe
  FakeNic nic;
  NicPfc pfc(nic, kLossless, 1000);
  EXPECT_EQ(pfc.configure({}), "");
  EXPECT_EQ(nic.configured, (std::vector<std::pair<uint16_t, uint16_t>>{{8, 8}, {113, 57}}))
      << "asked, then given as many as it says";
  EXPECT_EQ(pfc.queues().rx[3], 48);
  EXPECT_EQ(pfc.queues().tx[3], 24);
  EXPECT_EQ(pfc.queues().rx_count, 113);
  EXPECT_EQ(pfc.queues().lossless, kLossless);
  EXPECT_EQ(nic.last.rxmode.mq_mode, RTE_ETH_MQ_RX_DCB);
  EXPECT_EQ(nic.last.txmode.mq_mode, RTE_ETH_MQ_TX_DCB);
  EXPECT_EQ(nic.last.rx_adv_conf.dcb_rx_conf.nb_tcs, RTE_ETH_8_TCS);
  for (uint8_t priority = 0; priority < 8; ++priority) {
    EXPECT_EQ(nic.last.rx_adv_conf.dcb_rx_conf.dcb_tc[priority], priority);
    EXPECT_EQ(nic.last.tx_adv_conf.dcb_tx_conf.dcb_tc[priority], priority);
  }
  EXPECT_NE(nic.last.dcb_capability_en & RTE_ETH_DCB_PFC_SUPPORT, 0U);

  EXPECT_EQ(pfc.start(), "");
  ASSERT_EQ(nic.priorities.size(), 2U) << "the lossless classes";
  EXPECT_EQ(nic.priorities[0].priority, 3);
  EXPECT_EQ(nic.priorities[1].priority, 5);
  EXPECT_EQ(nic.priorities[0].fc.mode, RTE_ETH_FC_FULL);
  EXPECT_EQ(nic.priorities[0].fc.pause_time, 1000);
  EXPECT_EQ(nic.priorities[0].fc.send_xon, 1);
  EXPECT_EQ(nic.priorities[0].fc.high_water, 32U) << "128 and 64 do not fit";
  EXPECT_EQ(nic.priorities[0].fc.low_water, 16U);
}

TEST(NicPfc, DcbWithAQueueEach) {  // as i40e
  FakeNic nic;
  nic.rx_stride = nic.tx_stride = 1;
  NicPfc pfc(nic, kLossless, 1000);
  EXPECT_EQ(pfc.configure({}), "");
  EXPECT_EQ(nic.configured.size(), 1U);
  EXPECT_EQ(pfc.queues().rx_count, 8);
  EXPECT_EQ(pfc.queues().tx[7], 7);
}

TEST(NicPfc, PerQueue) {  // as cnxk
  FakeNic nic;
  nic.per_queue = kEightBothWays;
  nic.has_dcb = false;
  NicPfc pfc(nic, kLossless, 1000);
  EXPECT_EQ(pfc.configure({}), "");
  EXPECT_EQ(nic.last.rxmode.mq_mode, RTE_ETH_MQ_RX_NONE);
  EXPECT_EQ(nic.configured, (std::vector<std::pair<uint16_t, uint16_t>>{{8, 8}}));
  EXPECT_TRUE(nic.steered.empty()) << "rules once it is started";
  EXPECT_EQ(pfc.start(), "");
  ASSERT_EQ(nic.steered.size(), 8U);
  for (const auto& [pcp, queue] : nic.steered) EXPECT_EQ(queue, pcp);
  ASSERT_EQ(nic.per_queues.size(), 2U);
  EXPECT_EQ(nic.per_queues[1].mode, RTE_ETH_FC_FULL);
  EXPECT_EQ(nic.per_queues[1].rx_pause.tx_qid, 5);
  EXPECT_EQ(nic.per_queues[1].rx_pause.tc, 5);
  EXPECT_EQ(nic.per_queues[1].tx_pause.rx_qid, 5);
  EXPECT_EQ(nic.per_queues[1].tx_pause.tc, 5);
  EXPECT_EQ(nic.per_queues[1].tx_pause.pause_time, 1000);
  EXPECT_TRUE(nic.priorities.empty());
}

struct Refusal {
  const char* description;
  void (*change)(FakeNic& nic);
  const char* says;
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.description; }

class NicPfcRefusals : public testing::TestWithParam<Refusal> {};

TEST_P(NicPfcRefusals, AreOneLineThatSaysWhy) {
  FakeNic nic;
  GetParam().change(nic);
  NicPfc pfc(nic, kLossless, 1000);
  std::string why = pfc.configure({});
  if (why.empty()) why = pfc.start();
  EXPECT_EQ(why, GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(
    Table, NicPfcRefusals,
    testing::Values(
        Refusal{"too few receive queues", [](FakeNic& nic) { nic.max_rx = 4; },
                "driver net_fake has 4 receive and 128 transmit queues, PFC by the NIC takes 8 of each"},
        Refusal{"too few transmit queues", [](FakeNic& nic) { nic.max_tx = 1; },
                "driver net_fake has 128 receive and 1 transmit queues, PFC by the NIC takes 8 of each"},
        Refusal{"no operation at all", [](FakeNic& nic) { nic.has_dcb = false; },
                "driver net_fake has neither PFC per queue nor DCB: Operation not supported"},
        Refusal{"no DCB when it comes to it", [](FakeNic& nic) { nic.configure_result = -EINVAL; },
                "driver net_fake cannot be configured with 8 DCB classes: Invalid argument"},
        Refusal{"four classes only", [](FakeNic& nic) { nic.classes = 4; },
                "driver net_fake has 4 DCB classes, not one for each of 8 priorities"},
        Refusal{"classes share a queue", [](FakeNic& nic) { nic.rx_stride = 0; },
                "driver net_fake has 8 DCB classes, not one for each of 8 priorities"},
        Refusal{"queues beyond what it has", [](FakeNic& nic) { nic.max_rx = 64; },
                "driver net_fake does not give each class queues of its own within its 64 receive and 128 transmit "
                "ones"},
        Refusal{"DCB without PFC (as i40e)", [](FakeNic& nic) { nic.set_result = -ENOSYS; },
                "driver net_fake does no PFC for class 3: Function not implemented"},
        Refusal{"no watermark fits", [](FakeNic& nic) { nic.most_water = 1; },
                "driver net_fake does no PFC for class 3: Invalid argument"},
        Refusal{"PFC per queue for four classes",
                [](FakeNic& nic) {
                  nic.per_queue = {4, RTE_ETH_FC_FULL};
                },
                "driver net_fake does PFC for 4 classes, wanted are 8 in both directions"},
        Refusal{"PFC per queue in one direction",
                [](FakeNic& nic) {
                  nic.per_queue = {8, RTE_ETH_FC_RX_PAUSE};
                },
                "driver net_fake does PFC for 8 classes in one direction, wanted are 8 in both directions"},
        Refusal{"PFC per queue, eight queues refused",
                [](FakeNic& nic) {
                  nic.per_queue = kEightBothWays;
                  nic.configure_result = -ENOMEM;
                },
                "driver net_fake cannot be configured with a queue per class: Cannot allocate memory"},
        Refusal{"PFC per queue without flow rules",
                [](FakeNic& nic) {
                  nic.per_queue = kEightBothWays;
                  nic.steer_result = -ENOTSUP;
                },
                "driver net_fake cannot lead frames of PCP 0 to a queue: Operation not supported"},
        Refusal{"PFC per queue refused",
                [](FakeNic& nic) {
                  nic.per_queue = kEightBothWays;
                  nic.set_result = -EIO;
                },
                "driver net_fake does no PFC for class 3: Input/output error"}));

struct Spelling {
  const char* driver;
  std::map<std::string, uint64_t> counters;
  std::array<std::optional<uint64_t>, 4> of_class_3;
};
void PrintTo(const Spelling& spelling, std::ostream* out) { *out << spelling.driver; }

class NicPauseCounters : public testing::TestWithParam<Spelling> {};

TEST_P(NicPauseCounters, AreFoundUnderTheDriversNames) {
  FakeNic nic;
  nic.counters = GetParam().counters;
  const NicPauses pauses = NicPfc(nic, kLossless, 1000).pauses(3);
  const std::array<std::optional<uint64_t>, 4> got{pauses.rx_pause, pauses.rx_resume, pauses.tx_pause,
                                                   pauses.tx_resume};
  EXPECT_EQ(got, GetParam().of_class_3);
}

INSTANTIATE_TEST_SUITE_P(Table, NicPauseCounters,
                         testing::Values(Spelling{"ixgbe",
                                                  {{"rx_priority3_xoff_packets", 1},
                                                   {"rx_priority3_xon_packets", 2},
                                                   {"tx_priority3_xoff_packets", 3},
                                                   {"tx_priority3_xon_packets", 4},
                                                   {"rx_priority2_xoff_packets", 9}},
                                                  {1, 2, 3, 4}},
                                         Spelling{"txgbe",
                                                  {{"[p3]rx_up_xoff_packets", 5},
                                                   {"[p3]rx_up_xon_packets", 6},
                                                   {"[p3]tx_up_xoff_packets", 7},
                                                   {"[p3]tx_up_xon_packets", 8}},
                                                  {5, 6, 7, 8}},
                                         Spelling{"hns3",
                                                  {{"mac_rx_pfc_pri3_pkt_num", 9}, {"mac_tx_pfc_pri3_pkt_num", 10}},
                                                  {9, std::nullopt, 10, std::nullopt}},
                                         Spelling{"one that counts none", {{"rx_good_packets", 1}}, {}}));

// Virtual devices have no pauses to give, however many queues they have.
TEST(NicPfc, IsRefusedByVirtualDevices) {
  support::need_eal();
  struct Case {
    const char* device;
    const char* says;
  };
  for (const Case& of :
       {Case{"net_null7", "driver net_null has neither PFC per queue nor DCB: Operation not supported"},
        Case{"net_ring7", "driver net_ring has neither PFC per queue nor DCB: Operation not supported"}}) {
    EthdevPort port({.name = "a", .devargs = of.device});
    EXPECT_EQ(port.let_nic_do_pfc(kLossless, 1000), of.says);
  }
}

// net_null under the name of a NIC that does DCB as ixgbe does: the queues are real, what it says of classes is not.
class DcbOverNull final : public EthdevNicPfc {
 public:
  using EthdevNicPfc::EthdevNicPfc;
  int configure(uint16_t rx, uint16_t tx, const rte_eth_conf& conf) override {
    rte_eth_conf plain = conf;
    plain.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
    plain.txmode.mq_mode = RTE_ETH_MQ_TX_NONE;
    return EthdevNicPfc::configure(rx, tx, plain);
  }
  int dcb_info(rte_eth_dcb_info& dcb) const override { return answers.dcb_info(dcb); }
  int set_priority_pfc(rte_eth_pfc_conf& conf) override { return answers.set_priority_pfc(conf); }
  FakeNic answers;
};

TEST(NicPfc, QueuesOfEveryClassAreSetUp) {
  support::need_eal();
  EthdevPort port({.name = "a", .devargs = "net_null8", .rx_ring = 128, .tx_ring = 64});
  auto nic = std::make_unique<DcbOverNull>(port.facts().id);
  nic->answers.configured = {{8, 8}};  // eight classes from the start
  ASSERT_EQ(port.let_nic_do_pfc(kLossless, 1000, std::move(nic)), "");
  ASSERT_TRUE(port.facts().by_class.has_value());
  const ClassQueues& queues = *port.facts().by_class;
  EXPECT_EQ(port.facts().ring_packets, 8U * 128 + 105 * 32 + 8 * 64 + 49 * 32) << "113 and 57 queues";

  rte_mempool* pool = rte_pktmbuf_pool_create("nic-pfc-test", 1023, 0, kPrivateBytes, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
  ASSERT_NE(pool, nullptr);
  port.start(pool);
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    Packet* packets[4];
    ASSERT_EQ(rte_eth_rx_burst(port.facts().id, queues.rx[tc], packets, 4), 4) << "class " << tc;
    EXPECT_EQ(rte_eth_tx_burst(port.facts().id, queues.tx[tc], packets, 4), 4) << "class " << tc;
  }
  port.stop();
  rte_mempool_free(pool);
}

TEST(NicPfc, ANicThatRefusesItsPausesStopsTheStart) {
  support::need_eal();
  EthdevPort port({.name = "a", .devargs = "net_null9"});
  auto nic = std::make_unique<DcbOverNull>(port.facts().id);
  nic->answers.configured = {{8, 8}};
  nic->answers.set_result = -ENOSYS;
  ASSERT_EQ(port.let_nic_do_pfc(kLossless, 1000, std::move(nic)), "");
  rte_mempool* pool = rte_pktmbuf_pool_create("nic-pfc-test", 1023, 0, kPrivateBytes, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
  ASSERT_NE(pool, nullptr);
  try {
    port.start(pool);
    ADD_FAILURE() << "started";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "port a: cannot do pfc 'ethdev': driver net_null does no PFC for class 3: Function not implemented");
  }
  port.stop();
  rte_mempool_free(pool);
}

}  // namespace
}  // namespace heddle::dataplane
