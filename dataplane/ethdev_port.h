// A port on a DPDK device: PCI NIC or virtual (af_packet, tap, memif, pcap, ring, null).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/nic_pfc.h"
#include "net/headers.h"
#include "net/packet.h"
#include "net/rate.h"

struct rte_mempool;

namespace heddle::dataplane {

enum class LinkSource : uint8_t {
  kEthdev,    // what the driver says
  kNetlink,   // the kernel interface behind the port (af_packet: ethdev always says up)
  kAlwaysUp,  // nobody knows (tap: ethdev says down for ever once the interface is in another namespace)
};

struct DeviceSettings {
  std::string name;     // of the port, for messages
  std::string devargs;  // "0000:17:00.0" or "net_af_packet0,iface=veth0,…"
  uint16_t mtu = 1500;  // IP MTU, 576–9600
  uint16_t rx_ring = 512;
  uint16_t tx_ring = 64;     // shallow, so that queues form in heddle's egress queues
  std::string netdev;        // kernel interface behind the port; empty: taken from iface= (af_packet) or the tap's name
  std::optional<Rate> rate;  // empty: the link speed the device reports
  std::optional<LinkSource> link_source;
};

// What a probed device is and can do, before it is set up.
struct DeviceFacts {
  uint16_t id = 0;     // ethdev port id
  std::string driver;  // "net_af_packet", "net_ice", …
  net::Mac mac{};
  Rate rate;                      // reported link speed; unlimited if the device has none (pcap, ring, null)
  uint32_t max_frame = 0;         // longest frame it sends and receives, without FCS
  uint32_t buffer_bytes = 0;      // data room that its receive side needs in an mbuf
  uint32_t resident_packets = 0;  // mbufs it keeps for itself beyond its rings (pcap's infinite_rx)
  uint32_t ring_packets = 0;      // descriptors of all its queues
  uint16_t rx_ring = 0;           // as the driver rounds it
  uint16_t tx_ring = 0;
  LinkSource link_source = LinkSource::kEthdev;
  std::string netdev;
  std::optional<ClassQueues> by_class;  // nothing: one queue each way
  std::vector<std::string> cannot;      // one line each: what the device cannot do that a user might expect
};

class EthdevPort {
 public:
  // Probes the device. Throws Error (failed) if there is none or it refuses.
  explicit EthdevPort(const DeviceSettings& settings);
  ~EthdevPort();
  EthdevPort(EthdevPort&& other) noexcept;
  EthdevPort& operator=(EthdevPort&&) = delete;

  // To be called before `start`, and at most once: the NIC is to do PFC for the classes of `lossless` (bit = class),
  // with a queue each way for every class, asking for `quanta` each time. Returns why it cannot, in words that go
  // behind "because"; empty if it can. `nic`: who is asked instead of ethdev, for tests.
  std::string let_nic_do_pfc(uint8_t lossless, uint16_t quanta, std::unique_ptr<NicPfcDevice> nic = nullptr);
  // Sets up the queues with buffers from `pool`, starts the device, checks that it works.
  void start(rte_mempool* pool);
  void stop();

  const DeviceSettings& settings() const { return settings_; }
  const DeviceFacts& facts() const { return facts_; }

  // What the device itself counted and no packet shows.
  struct DeviceCounters {
    uint64_t rx_packets = 0;
    uint64_t tx_packets = 0;
    uint64_t rx_missed = 0;
    uint64_t rx_errors = 0;
    uint64_t rx_no_buffer = 0;
    uint64_t tx_errors = 0;
  };
  DeviceCounters device_counters() const;

  // Has MAC control frames delivered to us, as far as the driver knows how. Returns why it cannot; empty if it can.
  std::string receive_mac_control();
  // What the NIC counted of a class's pauses, if it does PFC.
  NicPauses nic_pauses(unsigned traffic_class) const;

  // Link state as the driver reports it.
  bool driver_link_up() const;

 private:
  DeviceSettings settings_;
  DeviceFacts facts_;
  std::unique_ptr<NicPfcDevice> nic_;
  std::unique_ptr<NicPfc> nic_pfc_;
  bool probed_ = false;
  bool started_ = false;
};

}  // namespace heddle::dataplane
