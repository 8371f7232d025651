// Priority-based flow control by the NIC, with one receive and one transmit queue per class. The NIC sorts what arrives
// by the PCP of its tag; a receive queue that nobody polls fills up, whereupon the NIC pauses that class of the peer; a
// pause that it receives stops the transmit queue of its class.
//
// DPDK 22.11 knows two ways:
//   per priority: DCB mode gives each priority its queues, rte_eth_dev_priority_flow_ctrl_set pauses it (ixgbe, txgbe,
//                 hns3; i40e has the first half only)
//   per queue:    flow rules lead priorities to queues, rte_eth_dev_priority_flow_ctrl_queue_configure pauses these
//                 (cnxk)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <rte_ethdev.h>

#include "dataplane/class_queues.h"

namespace heddle::dataplane {

// What is asked of a device: ethdev, or a test that stands in for a NIC. Each returns what the function of ethdev that
// it is named after does: 0, or a negative errno.
class NicPfcDevice {
 public:
  virtual ~NicPfcDevice() = default;
  virtual rte_eth_dev_info info() const = 0;
  virtual int configure(uint16_t rx_queues, uint16_t tx_queues, const rte_eth_conf& conf) = 0;
  virtual int dcb_info(rte_eth_dcb_info& dcb) const = 0;
  virtual int queue_pfc_info(rte_eth_pfc_queue_info& info) const = 0;
  virtual int flow_control(rte_eth_fc_conf& conf) const = 0;
  virtual int set_priority_pfc(rte_eth_pfc_conf& conf) = 0;
  virtual int set_queue_pfc(rte_eth_pfc_queue_conf& conf) = 0;
  // A flow rule: frames whose tag has that PCP go to that receive queue.
  virtual int steer(unsigned pcp, uint16_t queue) = 0;
  virtual std::optional<uint64_t> extended_counter(const std::string& name) const = 0;
};

// Pause frames of one class as the NIC counts them; nothing: its driver does not say.
struct NicPauses {
  std::optional<uint64_t> rx_pause;
  std::optional<uint64_t> rx_resume;
  std::optional<uint64_t> tx_pause;
  std::optional<uint64_t> tx_resume;
};

class NicPfc {
 public:
  // The device outlives it. `lossless`: bit = class that is paused and pauses; `quanta` are asked for each time.
  NicPfc(NicPfcDevice& device, uint8_t lossless, uint16_t quanta);

  // Configures the device, which is stopped, with `conf` and one queue of each kind per class. Returns why it cannot
  // be, in words that go behind "because"; empty if it is done.
  std::string configure(rte_eth_conf conf);
  const ClassQueues& queues() const { return queues_; }

  // Leads priorities to queues and turns pauses on; the device has been started. Returns as above.
  std::string start();

  // By tries of one class's names: drivers spell them differently.
  NicPauses pauses(unsigned traffic_class) const;

 private:
  std::string configure_dcb(rte_eth_conf& conf);
  std::string read_dcb_queues();
  std::string pause_priorities();
  std::string pause_queues();
  std::string driver() const { return device_.info().driver_name; }

  NicPfcDevice& device_;
  uint16_t quanta_;
  bool per_queue_ = false;
  ClassQueues queues_;
};

// The device with that ethdev id.
class EthdevNicPfc : public NicPfcDevice {
 public:
  explicit EthdevNicPfc(uint16_t id) : id_(id) {}
  rte_eth_dev_info info() const override;
  int configure(uint16_t rx_queues, uint16_t tx_queues, const rte_eth_conf& conf) override;
  int dcb_info(rte_eth_dcb_info& dcb) const override;
  int queue_pfc_info(rte_eth_pfc_queue_info& info) const override;
  int flow_control(rte_eth_fc_conf& conf) const override;
  int set_priority_pfc(rte_eth_pfc_conf& conf) override;
  int set_queue_pfc(rte_eth_pfc_queue_conf& conf) override;
  int steer(unsigned pcp, uint16_t queue) override;
  std::optional<uint64_t> extended_counter(const std::string& name) const override;

 private:
  uint16_t id_;
};

}  // namespace heddle::dataplane
