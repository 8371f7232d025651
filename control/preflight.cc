#include "control/preflight.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include <linux/capability.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dataplane/device_traits.h"
#include "dataplane/eal.h"
#include "net/error.h"

namespace heddle::control {

namespace {

void check_cpus(const SwitchConfig& config);
void check_control_socket(const std::string& path);
void check_port(const PortConfig& port);

}  // namespace

void check_machine(const SwitchConfig& config) {
  check_cpus(config);
  check_control_socket(config.control_socket);
  for (const PortConfig& port : config.ports) check_port(port);
}

namespace {

void check_cpus(const SwitchConfig& config) {
  const std::vector<unsigned> allowed = dataplane::allowed_cpus();
  for (const unsigned cpu : config.worker_cpus) {
    if (std::find(allowed.begin(), allowed.end(), cpu) != allowed.end()) continue;
    throw_bad_input("switch.workers: found CPU {}; accepted: those this process may run on: {}", cpu,
                    fmt::join(allowed, ", "));
  }
}

void check_control_socket(const std::string& path) {
  if (path.empty()) return;
  std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  std::error_code ignored;
  while (!std::filesystem::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  if (access(folder.c_str(), W_OK | X_OK) == 0) return;
  throw_failed("control socket {}: {}: {}; choose another place, e.g. --set switch.control=/tmp/heddle.sock, or none",
               path, folder.string(), std::strerror(errno));
}

void check_interface(const PortConfig& port, const char* key) {
  const std::string name = dataplane::devarg(port.device, key);
  if (name.empty() || if_nametoindex(name.c_str()) != 0) return;
  throw_bad_input("{}: port {}: found {}={}; accepted: an interface of this network namespace", port.place, port.name,
                  key, name);
}

void check_output(const PortConfig& port, const std::string& path) {
  if (path.empty() || path == "-") return;
  std::string folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (access(path.c_str(), F_OK) == 0 ? access(path.c_str(), W_OK) == 0 : access(folder.c_str(), W_OK | X_OK) == 0) {
    return;
  }
  throw_bad_input("{}: port {}: found tx_pcap={}: {}; accepted: a file that can be written", port.place, port.name,
                  path, std::strerror(errno));
}

void check_capture(const PortConfig& port) {
  const std::string input = dataplane::devarg(port.device, "rx_pcap");
  if (!input.empty() && input != "-") {
    const bool endless = dataplane::devarg(port.device, "infinite_rx") == "1";
    if (const std::string fault = fault_of_capture(input, endless); !fault.empty()) {
      throw_bad_input("{}: port {}: rx_pcap={}: {}", port.place, port.name, input, fault);
    }
  }
  check_output(port, dataplane::devarg(port.device, "tx_pcap"));
  for (const char* key : {"rx_iface", "rx_iface_in", "tx_iface", "iface"}) check_interface(port, key);
}

[[noreturn]] void refuse_right(const PortConfig& port, std::string_view what) {
  throw_failed("{}: port {}: {}; {} ports need root, or the capabilities CAP_NET_ADMIN and CAP_NET_RAW", port.place,
               port.name, what, port.driver);
}

void check_packet_socket(const PortConfig& port) {
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (fd < 0) refuse_right(port, fmt::format("no packet socket: {}", std::strerror(errno)));
  close(fd);
}

// Whether this process may make network interfaces. Trying would leave one behind for a moment.
void check_network_admin(const PortConfig& port) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return;
  if ((sets[0].effective & (1U << CAP_NET_ADMIN)) == 0) refuse_right(port, "not allowed to make an interface");
}

void check_pci(const PortConfig& port) {
  std::string address = dataplane::device_name(port.device);
  if (address.size() == 7) address = "0000:" + address;
  std::transform(address.begin(), address.end(), address.begin(), [](unsigned char c) { return std::tolower(c); });
  if (access(("/sys/bus/pci/devices/" + address).c_str(), F_OK) == 0) return;
  throw_bad_input("{}: port {}: found no PCI device {}; accepted: one that dpdk-devbind.py --status lists", port.place,
                  port.name, address);
}

void check_port(const PortConfig& port) {
  if (port.driver == "pci") check_pci(port);
  if (port.driver == "net_pcap") check_capture(port);
  if (port.driver == "net_af_packet" || port.driver == "net_af_xdp") {
    check_interface(port, "iface");
    check_packet_socket(port);
  }
  if (port.driver == "net_tap") check_network_admin(port);
}

}  // namespace

// Captures

namespace {

constexpr uint32_t kEthernet = 1;  // LINKTYPE_ETHERNET

struct LinkType {
  uint32_t number;
  std::string_view name;
};
constexpr std::array<LinkType, 7> kLinkTypes{{{0, "BSD loopback"},
                                              {101, "raw IP"},
                                              {113, "Linux cooked, as of tcpdump -i any"},
                                              {127, "802.11"},
                                              {197, "ERF"},
                                              {247, "InfiniBand"},
                                              {276, "Linux cooked, as of tcpdump -i any"}}};

std::string name_of_link_type(uint32_t number) {
  for (const LinkType& type : kLinkTypes) {
    if (type.number == number) return fmt::format("frames of link type {} ({})", number, type.name);
  }
  return fmt::format("frames of link type {}", number);
}

struct CaptureFormat {
  bool known = false;
  bool pcapng = false;
  uint32_t link_type = 0;
};

uint32_t swapped(uint32_t value, bool swap) { return swap ? __builtin_bswap32(value) : value; }

// Classic pcap: magic, version, zone, accuracy, snap length, link type (draft-ietf-opsawg-pcap 4).
CaptureFormat read_pcap_header(FILE* file, uint32_t magic) {
  CaptureFormat format;
  const bool swap = magic == 0xd4c3b2a1 || magic == 0x4d3cb2a1;
  if (!swap && magic != 0xa1b2c3d4 && magic != 0xa1b23c4d) return format;
  std::array<uint32_t, 5> rest{};
  if (std::fread(rest.data(), sizeof rest, 1, file) != 1) return format;
  format.known = true;
  format.link_type = swapped(rest[4], swap) & 0xffff;  // above: whether frames carry an FCS
  return format;
}

// pcapng: a section header block, then the description of the first interface (draft-ietf-opsawg-pcapng 4.1, 4.2).
CaptureFormat read_pcapng_header(FILE* file) {
  CaptureFormat format;
  constexpr uint32_t kByteOrder = 0x1a2b3c4d;
  constexpr uint32_t kInterface = 1;
  std::array<uint32_t, 2> section{};  // block length, byte order
  if (std::fread(section.data(), sizeof section, 1, file) != 1) return format;
  const bool swap = section[1] != kByteOrder;
  if (swap && swapped(section[1], true) != kByteOrder) return format;
  std::array<uint32_t, 3> interface {};  // block type, block length, link type (16 bits) and nothing
  if (std::fseek(file, static_cast<long>(swapped(section[0], swap)), SEEK_SET) != 0) return format;
  if (std::fread(interface.data(), sizeof interface, 1, file) != 1) return format;
  if (swapped(interface[0], swap) != kInterface) return format;
  format.known = format.pcapng = true;
  format.link_type = swap ? swapped(interface[2], true) >> 16U : interface[2] & 0xffff;
  return format;
}

}  // namespace

std::string fault_of_capture(const std::string& path, bool endless) {
  constexpr std::string_view accepted = "a pcap or pcapng file of Ethernet frames";
  constexpr uint32_t kPcapng = 0x0a0d0d0a;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return fmt::format("found a directory; accepted: {}", accepted);
  if (std::filesystem::is_fifo(path, ignored)) return {};  // what is read from it is gone
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return fmt::format("{}; accepted: {}", std::strerror(errno), accepted);
  uint32_t magic = 0;
  if (std::fread(&magic, sizeof magic, 1, file.get()) != 1) magic = 0;
  const CaptureFormat format = magic == kPcapng ? read_pcapng_header(file.get()) : read_pcap_header(file.get(), magic);
  if (!format.known) return fmt::format("found a file of another kind; accepted: {}", accepted);
  if (format.link_type != kEthernet) {
    return fmt::format("found {}; accepted: {}", name_of_link_type(format.link_type), accepted);
  }
  if (!endless) return {};
  if (format.pcapng) return "found pcapng; accepted beside infinite_rx=1: pcap (editcap -F pcap converts it)";
  if (dataplane::count_pcap_frames(path) == 0) return "found no frame; accepted beside infinite_rx=1: at least one";
  return {};
}

}  // namespace heddle::control
