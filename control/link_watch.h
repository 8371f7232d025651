// Follows the links of a switch's ports and tells the packet path which can send.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/ethdev_port.h"
#include "dataplane/tables.h"

namespace heddle::control {

class LinkWatch {
 public:
  struct Watched {
    PortId port = 0;
    dataplane::LinkSource source = dataplane::LinkSource::kEthdev;
    std::string netdev;                             // for kNetlink
    const dataplane::EthdevPort* device = nullptr;  // for kEthdev
  };
  using OnChange = std::function<void(PortId port, bool up)>;

  // Starts a thread that keeps `states` true: netlink events at once, drivers asked every 10 ms. `on_change` is called
  // from it for every change after the first look. Throws Error (failed) if netlink is needed and refused.
  LinkWatch(std::vector<Watched> ports, dataplane::PortStates& states, OnChange on_change);
  ~LinkWatch();
  LinkWatch(const LinkWatch&) = delete;
  LinkWatch& operator=(const LinkWatch&) = delete;

 private:
  struct Netlink;

  void run();
  void set(const Watched& watched, bool up);
  void look_at_drivers();
  void read_kernel_links();

  std::vector<Watched> ports_;
  dataplane::PortStates& states_;
  OnChange on_change_;
  std::unique_ptr<Netlink> netlink_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace heddle::control
