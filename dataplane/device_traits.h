// What DPDK 22.11's port drivers do not say about themselves, or say wrongly. One row per driver, each seen in its
// source or by trying it; a driver without a row is taken at its word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/ethdev_port.h"

namespace heddle::dataplane {

struct DriverTraits {
  std::string_view driver;
  LinkSource link_source;
  bool reports_rate;         // its link speed means something
  bool mtu_outside;          // frame size is set at the kernel interface and ring slot, not through ethdev
  bool tx_refuses_oversize;  // an over-long frame makes tx_burst return short for ever
  bool fixed_mac;            // the MAC it reports is the interface's own
  std::string_view cannot;   // a remark for the start-up lines; empty if none
};

// The row for `driver`, or the default row for a NIC.
const DriverTraits& traits_of(std::string_view driver);

// Value of `key` in devargs ("net_x0,iface=veth0,framesz=8192"); empty if absent.
std::string devarg(std::string_view devargs, std::string_view key);
// Device name in front of the first comma.
std::string device_name(std::string_view devargs);
// Frames in the pcap file; 0 if it cannot be read.
uint32_t count_pcap_frames(const std::string& path);

}  // namespace heddle::dataplane
