#include "lab/subnet/opensm.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "lab/subnet/child_process.h"
#include "lab/subnet/dumps.h"
#include "lab/subnet/ibnetdiscover.h"
#include "lab/topology/import_text.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kWrapper = "libumad2sim.so";  // takes the place of the kernel's umad devices

// A program by its name, where Debian and a user's PATH have it; "" if it is nowhere.
std::string find_program(const std::string& name) {
  std::vector<std::string> places = {"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"};
  if (const char* path = std::getenv("PATH"); path != nullptr) {
    std::string_view rest = path;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) places.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  for (const std::string& place : places) {
    std::string file = fmt::format("{}/{}", place, name);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

std::string find_wrapper() {
  for (const char* place : {"/usr/lib/x86_64-linux-gnu/umad2sim", "/usr/lib/aarch64-linux-gnu/umad2sim",
                            "/usr/lib64/umad2sim", "/usr/lib/umad2sim", "/usr/local/lib/umad2sim"}) {
    std::string file = fmt::format("{}/{}", place, kWrapper);
    if (access(file.c_str(), R_OK) == 0) return file;
  }
  return "";
}

// A directory of our own, removed with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_((fs::temp_directory_path() / "heddle-subnet-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw_failed("{}: cannot be made", path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  if (!(file << text) || !file.flush()) throw_failed("cannot write {}", path);
}

std::string read_if_there(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) ? read_text_file(path) : "";
}

// The last line of a log that holds one of these words, without its time stamp.
std::string last_line_with(const std::string& log, std::initializer_list<std::string_view> words) {
  std::string found;
  std::string_view rest = log;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    for (const std::string_view word : words) {
      if (line.find(word) != std::string_view::npos) found = line;
    }
  }
  const size_t stamp = found.find("-> ");
  return stamp == std::string::npos ? found : found.substr(stamp + 3);
}

class Run {
 public:
  Run(const Topology& topology, const std::vector<bool>& link_up, const OpensmSettings& settings)
      : topology_(topology), link_up_(link_up), settings_(settings), end_(Clock::now() + settings.limit) {}

  OpensmRun run();

 private:
  bool has_lanes() const { return settings_.qos || settings_.engine == "dfsssp"; }
  ChildCommand simulator() const;
  ChildCommand manager() const;
  ChildCommand with_wrapper(std::vector<std::string> words, const char* output) const;
  void wait_for_simulator(ChildProcess& simulator) const;
  void wait_for_manager(ChildProcess& manager) const;
  void check_interrupt() const;
  std::string first_host() const;
  std::string known_lids() const;
  std::string log_end() const;
  void read_lanes(SubnetTables& tables) const;
  std::optional<VlArbitration> query_arbitration(Lid lid, uint32_t port, SubnetTables tables) const;

  const Topology& topology_;
  const std::vector<bool>& link_up_;
  const OpensmSettings& settings_;
  Clock::time_point end_;
  TemporaryDirectory directory_;
  std::string socket_;
};

OpensmRun Run::run() {
  static std::atomic<uint32_t> runs{0};
  socket_ = fmt::format("heddle-{}-{}", getpid(), runs++);
  const auto begin = Clock::now();
  write_file(directory_.file("fabric.net"), write_ibnetdiscover(topology_, link_up_));
  write_file(directory_.file("opensm.conf"), "");  // not the machine's
  write_file(directory_.file("guid2lid"), known_lids());
  OpensmRun result;
  ChildProcess simulated(simulator());
  wait_for_simulator(simulated);
  {
    ChildProcess managed(manager());
    wait_for_manager(managed);
  }
  result.tables = read_lft_dump(topology_, read_text_file(directory_.file(kLftDump)), kLftDump);
  result.tables.engine = settings_.engine;
  if (has_lanes()) read_lanes(result.tables);
  if (const std::string order = read_if_there(directory_.file(kHostOrderDump)); !order.empty()) {
    result.host_order = read_host_order(result.tables, order, kHostOrderDump);
  }
  result.version = last_line_with(read_if_there(directory_.file("opensm.out")), {"OpenSM 3", "OpenSM 4", "OpenSM 5"});
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

ChildCommand Run::simulator() const {
  // Its tables are as large as it is told, whatever the file holds.
  uint64_t ports = 0;
  for (const std::vector<LinkId>& of_node : topology_.ports) ports += of_node.size() + 1;
  uint64_t numbered = 0;  // port numbers with gaps take room as well
  for (const std::vector<uint16_t>& numbers : topology_.port_numbers) {
    numbered += numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end()) + 1U;
  }
  return {.words = {find_program("ibsim"), "-s", "-n", "-N", fmt::format("{}", topology_.nodes.size() + 8), "-S",
                    fmt::format("{}", topology_.switch_count() + 8), "-P",
                    fmt::format("{}", std::max(ports, numbered) + 64), "-L", "49152", directory_.file("fabric.net")},
          .variables = {{"IBSIM_SOCKNAME", socket_}},
          .directory = directory_.path(),
          .output = directory_.file("ibsim.out")};
}

ChildCommand Run::manager() const {
  // Log flags: errors, information and routing (which dumps the tables); debugging for the lanes of paths.
  const char* flags = settings_.engine == "dfsssp" ? "0x4b" : "0x43";
  std::vector<std::string> words = {find_program("opensm"),
                                    "-o",
                                    "-e",
                                    "-f",
                                    directory_.file("osm.log"),
                                    "-D",
                                    flags,
                                    "-F",
                                    directory_.file("opensm.conf"),
                                    "-R",
                                    settings_.engine + ",no_fallback",
                                    "-l",
                                    fmt::format("{}", settings_.lmc),
                                    "--dump_files_dir",
                                    directory_.path()};
  if (has_lanes()) words.emplace_back("-Q");
  if (settings_.engine == "updn" || settings_.engine == "dnup") {
    // Its own search for roots fails where no switch stands out, as on a ring.
    std::string roots;
    const std::vector<uint16_t> ranks = up_down_ranks(topology_, link_up_);
    for (uint32_t s = 0; s < ranks.size(); ++s) {
      if (ranks[s] == 0) roots += fmt::format("0x{:016x}\n", node_guid(topology_, topology_.host_count + s));
    }
    write_file(directory_.file("roots"), roots);
    words.insert(words.end(), {"-a", directory_.file("roots")});
  }
  return with_wrapper(std::move(words), "opensm.out");
}

ChildCommand Run::with_wrapper(std::vector<std::string> words, const char* output) const {
  return {.words = std::move(words),
          .variables = {{"IBSIM_SOCKNAME", socket_},
                        {"LD_PRELOAD", find_wrapper()},
                        {"SIM_HOST", first_host()},
                        {"OSM_TMP_DIR", directory_.path()},
                        {"OSM_CACHE_DIR", directory_.path()}},
          .directory = directory_.path(),
          .output = directory_.file(output)};
}

std::string Run::first_host() const {
  for (HostId host = 0; host < topology_.host_count; ++host) {
    if (link_up_[topology_.ports[host][0]]) return node_identifier(topology_, host);
  }
  throw_bad_input("subnet: no host has a link that is up");
}

// OpenSM's memory of an earlier run: it keeps these LIDs, so that a re-sweep of a changed fabric finds hosts where they
// were, as it does in a fabric that goes on running.
std::string Run::known_lids() const {
  const SubnetTables numbered = number_subnet(topology_, settings_.lmc);
  std::string text;
  for (HostId host = 0; host < topology_.host_count; ++host) {
    const uint32_t lid = numbered.host_lids[host];
    text += fmt::format("0x{:016x} 0x{:04x} 0x{:04x}\n\n", node_guid(topology_, host) + port_number(topology_, host, 0),
                        lid, lid + numbered.paths_per_host() - 1);
  }
  for (uint32_t s = 0; s < numbered.switches.size(); ++s) {
    const Lid lid = numbered.switches[s].lid;
    text += fmt::format("0x{:016x} 0x{:04x} 0x{:04x}\n\n", node_guid(topology_, topology_.host_count + s), lid, lid);
  }
  return text;
}

void Run::check_interrupt() const {
  if (settings_.interrupted && settings_.interrupted()) throw_failed("subnet: interrupted");
  if (Clock::now() > end_) {
    throw_failed("subnet: OpenSM over ibsim has taken longer than {} s; the last it said: {}", settings_.limit.count(),
                 last_line_with(read_if_there(directory_.file("osm.log")), {"->"}));
  }
}

// It is ready when its control socket, in the abstract name space, is there.
void Run::wait_for_simulator(ChildProcess& simulator) const {
  const std::string wanted = "@" + socket_ + ":ctl";
  while (true) {
    std::ifstream sockets("/proc/net/unix");
    const std::string list{std::istreambuf_iterator<char>(sockets), {}};
    if (list.find(wanted) != std::string::npos) return;
    if (const auto status = simulator.wait(std::chrono::milliseconds(10))) {
      throw_failed("subnet: ibsim ended with {}: {}", *status,
                   last_line_with(read_if_there(directory_.file("ibsim.out")), {""}));
    }
    check_interrupt();
  }
}

void Run::wait_for_manager(ChildProcess& manager) const {
  // With fallback off, an engine that fails leaves it waiting for the next sweep.
  const auto failed = [this] { return log_end().find("No routing engine able to") != std::string::npos; };
  std::optional<int> status;
  while (!(status = manager.wait(std::chrono::milliseconds(100))) && !failed()) check_interrupt();
  const std::string log = read_if_there(directory_.file("osm.log"));
  const std::string done = fmt::format("{} tables configured on all switches", settings_.engine);
  if (status.value_or(1) != 0 || log.find(done) == std::string::npos) {
    std::string reason = last_line_with(log, {"ERR", "not supported"});
    if (reason.empty()) reason = last_line_with(log, {"cannot", "FATAL", "->"});
    throw_failed("subnet: OpenSM's {} did not route this fabric: {}", settings_.engine, reason);
  }
}

// The last 4 KiB of OpenSM's log, which may have grown large.
std::string Run::log_end() const {
  std::ifstream file(directory_.file("osm.log"), std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - 4096));
  return {std::istreambuf_iterator<char>(file), {}};
}

// OpenSM dumps the lanes of levels; levels of paths are in its log, and arbitration is asked of one port of each kind,
// as OpenSM configures all ports of a kind alike.
void Run::read_lanes(SubnetTables& tables) const {
  if (const std::string text = read_if_there(directory_.file(kSlToVlDump)); !text.empty()) {
    read_sl_to_vl_dump(topology_, text, kSlToVlDump, tables);
  }
  read_path_sl_dump(read_if_there(directory_.file("osm.log")), tables);
  const auto host = std::find_if(tables.host_lids.begin(), tables.host_lids.end(), [](Lid lid) { return lid != 0; });
  if (find_program("smpquery").empty() || host == tables.host_lids.end()) return;
  const auto first = static_cast<HostId>(host - tables.host_lids.begin());
  const Link& link = topology_.links[topology_.ports[first][0]];
  const uint32_t leaf = topology_.leaf_of(first) - topology_.host_count;
  const PortIndex port = link.a == first ? link.b_port : link.a_port;
  if (const auto at = query_arbitration(*host, port_number(topology_, first, 0), tables)) {
    tables.host_vl_arbitration.assign(topology_.host_count, *at);
  }
  const uint32_t number = port_number(topology_, topology_.host_count + leaf, port);
  if (const auto at = query_arbitration(tables.switches[leaf].lid, number, tables)) {
    for (SwitchTables& s : tables.switches) s.vl_arbitration.assign(s.ports + 1U, *at);
  }
}

// `tables` only to find the port that is asked about.
std::optional<VlArbitration> Run::query_arbitration(Lid lid, uint32_t port, SubnetTables tables) const {
  const auto ask = [&](const char* what) {
    ChildProcess query(with_wrapper({find_program("smpquery"), what, fmt::format("{}", lid), fmt::format("{}", port)},
                                    "smpquery.out"));
    std::optional<int> status;
    while (!(status = query.wait(std::chrono::milliseconds(50)))) check_interrupt();
    return *status == 0 ? read_if_there(directory_.file("smpquery.out")) : "";
  };
  for (SwitchTables& s : tables.switches) s.vl_arbitration.clear();
  tables.host_vl_arbitration.clear();
  read_vl_arbitration_dump(topology_, ask("vlarb"), "smpquery", tables);
  std::optional<VlArbitration> found;
  for (const VlArbitration& at : tables.host_vl_arbitration) {
    if (!at.high.empty() || !at.low.empty()) found = at;
  }
  for (const SwitchTables& s : tables.switches) {
    for (const VlArbitration& at : s.vl_arbitration) {
      if (!at.high.empty() || !at.low.empty()) found = at;
    }
  }
  const std::string port_info = ask("portinfo");  // "VLHighLimit:.....................0"
  const std::string key = "VLHighLimit:";
  if (const size_t at = port_info.find(key); found && at != std::string::npos) {
    const size_t number = port_info.find_first_not_of('.', at + key.size());
    found->high_limit = static_cast<uint8_t>(std::strtoul(port_info.c_str() + number, nullptr, 10));
  }
  return found;
}

}  // namespace

const std::vector<std::string_view>& opensm_engines() {
  static const std::vector<std::string_view> engines{"minhop", "updn", "dnup", "ftree", "dor", "sssp", "dfsssp", "nue"};
  return engines;
}

bool opensm_installed() {
  return !find_program("opensm").empty() && !find_program("ibsim").empty() && !find_wrapper().empty();
}

OpensmRun run_opensm(const Topology& topology, const std::vector<bool>& link_up, const OpensmSettings& settings) {
  const auto& engines = opensm_engines();
  if (std::find(engines.begin(), engines.end(), settings.engine) == engines.end()) {
    throw_bad_input("subnet: no engine '{}'; accepted: {}", settings.engine, fmt::join(engines, ", "));
  }
  if (!opensm_installed()) {
    throw_failed(
        "subnet: engine {} is OpenSM's, which is not installed with ibsim (Debian: opensm, ibsim-utils); "
        "built in: shortest-path, up-down",
        settings.engine);
  }
  // The same limits as those of the built-in tables: ports and LIDs.
  number_subnet(topology, settings.lmc);
  return Run(topology, link_up, settings).run();
}

}  // namespace heddle::lab
