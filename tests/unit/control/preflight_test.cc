// What only the machine can tell about a configuration, and in which words it is refused.
#include "control/preflight.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "dataplane/eal.h"
#include "net/error.h"

namespace heddle::control {
namespace {

// A folder of the test's own, gone with it.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "heddle-preflight-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }
  std::string path(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string big(uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>((value >> shift) & 0xff);
  return text;
}
std::string little(uint32_t value) {
  std::string text = big(value);
  std::reverse(text.begin(), text.end());
  return text;
}

// A classic pcap file with `frames` of 60 zero bytes.
std::string pcap(std::string (*word)(uint32_t), uint32_t magic, uint32_t link_type, int frames) {
  std::string file = word(magic) + word(0x00020004) + word(0) + word(0) + word(65535) + word(link_type);
  for (int i = 0; i < frames; ++i) file += word(0) + word(0) + word(60) + word(60) + std::string(60, '\0');
  return file;
}

// A pcapng file: section header, one interface, nothing else. The 16 bits of the link type come first in either order.
std::string pcapng(std::string (*word)(uint32_t), uint16_t link_type) {
  const std::string first = word(uint32_t{link_type} << 16U).substr(0, 2);
  const std::string second = word(link_type).substr(0, 2);
  const bool big_endian = word(1) == big(1);
  return word(0x0a0d0d0a) + word(28) + word(0x1a2b3c4d) + word(1) + word(0xffffffff) + word(0xffffffff) + word(28) +
         word(1) + word(20) + (big_endian ? first : second) + std::string(2, '\0') + word(0) + word(20);
}

struct CaptureCase {
  std::string what;
  std::string content;
  bool endless;
  std::string fault;  // empty: none
};

TEST(Preflight, ToldWhatIsWrongWithACapture) {
  const std::string kAccepted = "accepted: a pcap or pcapng file of Ethernet frames";
  const std::vector<CaptureCase> cases{
      {"Ethernet, little endian, microseconds", pcap(little, 0xa1b2c3d4, 1, 2), false, ""},
      {"Ethernet, big endian, nanoseconds", pcap(big, 0xa1b23c4d, 1, 2), false, ""},
      {"Ethernet with the FCS length in the upper bits", pcap(little, 0xa1b2c3d4, 0x44000001, 2), false, ""},
      {"no frame", pcap(little, 0xa1b2c3d4, 1, 0), false, ""},
      {"pcapng, little endian", pcapng(little, 1), false, ""},
      {"pcapng, big endian", pcapng(big, 1), false, ""},
      {"one frame again and again", pcap(big, 0xa1b2c3d4, 1, 1), true, ""},
      {"raw IP", pcap(little, 0xa1b2c3d4, 101, 1), false, "found frames of link type 101 (raw IP); " + kAccepted},
      {"raw IP, big endian", pcap(big, 0xa1b2c3d4, 101, 1), false,
       "found frames of link type 101 (raw IP); " + kAccepted},
      {"a link type without a name", pcap(little, 0xa1b2c3d4, 147, 1), false,
       "found frames of link type 147; " + kAccepted},
      {"InfiniBand in pcapng", pcapng(little, 247), false, "found frames of link type 247 (InfiniBand); " + kAccepted},
      {"InfiniBand in pcapng, big endian", pcapng(big, 247), false,
       "found frames of link type 247 (InfiniBand); " + kAccepted},
      {"text", "ports:\n  - {name: a}\n  - {name: b}\n", false, "found a file of another kind; " + kAccepted},
      {"nothing", "", false, "found a file of another kind; " + kAccepted},
      {"a header cut short", pcap(little, 0xa1b2c3d4, 1, 0).substr(0, 20), false,
       "found a file of another kind; " + kAccepted},
      {"pcapng cut short", pcapng(little, 1).substr(0, 30), false, "found a file of another kind; " + kAccepted},
      {"no frame, again and again", pcap(little, 0xa1b2c3d4, 1, 0), true,
       "found no frame; accepted beside infinite_rx=1: at least one"},
      {"pcapng again and again", pcapng(little, 1), true,
       "found pcapng; accepted beside infinite_rx=1: pcap (editcap -F pcap converts it)"},
  };
  const Folder folder;
  for (const CaptureCase& one : cases) {
    EXPECT_EQ(fault_of_capture(folder.file("capture", one.content), one.endless), one.fault) << one.what;
  }
  EXPECT_EQ(fault_of_capture(folder.path("missing"), false), "No such file or directory; " + kAccepted);
  EXPECT_EQ(fault_of_capture(folder.path(""), false), "found a directory; " + kAccepted);
}

// What check_machine says of a port with this device, empty if nothing; no control socket.
std::string said_of(const std::string& device) {
  const SwitchConfig config = load_switch_config_text(
      "switch: {control: none}\nports:\n  - {name: a, device: \"" + device + "\"}\n", "leaf.yaml");
  try {
    check_machine(config);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Preflight, PortsAreRefusedByPlaceAndName) {
  const Folder folder;
  const std::string good = folder.file("good.pcap", pcap(little, 0xa1b2c3d4, 1, 1));
  const std::string out = folder.path("out.pcap");
  const std::string nowhere = folder.path("nowhere/out.pcap");
  EXPECT_EQ(said_of("net_pcap0,rx_pcap=" + good + ",tx_pcap=" + out), "");
  EXPECT_FALSE(std::filesystem::exists(out)) << "the check must leave nothing behind";
  EXPECT_EQ(said_of("net_pcap0,tx_pcap=" + nowhere),
            "leaf.yaml:3: port a: found tx_pcap=" + nowhere +
                ": No such file or directory; accepted: a file that can be written");
  EXPECT_EQ(said_of("net_pcap0,rx_pcap=" + out),
            "leaf.yaml:3: port a: rx_pcap=" + out +
                ": No such file or directory; accepted: a pcap or pcapng file of Ethernet frames");
  EXPECT_EQ(said_of("net_pcap0,iface=nosuch0"),
            "leaf.yaml:3: port a: found iface=nosuch0; accepted: an interface of this network namespace");
  EXPECT_EQ(said_of("net_af_packet0,iface=nosuch0"),
            "leaf.yaml:3: port a: found iface=nosuch0; accepted: an interface of this network namespace");
  EXPECT_EQ(said_of("ff:1f.7"),
            "leaf.yaml:3: port a: found no PCI device 0000:ff:1f.7; accepted: one that dpdk-devbind.py --status lists");
  EXPECT_EQ(said_of("net_null0"), "");
}

TEST(Preflight, WorkersNeedCpusOfThisMachine) {
  SwitchConfig config =
      load_switch_config_text("switch: {control: none}\nports:\n  - {name: a, device: net_null0}\n", "leaf.yaml");
  config.worker_cpus = {dataplane::allowed_cpus().front()};
  EXPECT_NO_THROW(check_machine(config));
  config.worker_cpus = {1023};
  try {
    check_machine(config);
    FAIL() << "CPU 1023 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
    EXPECT_NE(std::string(error.what()).find("switch.workers: found CPU 1023; accepted: "), std::string::npos);
  }
}

TEST(Preflight, TheControlSocketNeedsAFolderToLieIn) {
  const Folder folder;
  SwitchConfig config = load_switch_config_text("ports:\n  - {name: a, device: net_null0}\n", "leaf.yaml");
  config.control_socket = folder.path("one/two/socket");  // made at start
  EXPECT_NO_THROW(check_machine(config));
  config.control_socket = folder.file("plain", "") + "/socket";
  EXPECT_THROW(check_machine(config), Error);
}

}  // namespace
}  // namespace heddle::control
