#include "dataplane/eal.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>

#include "net/error.h"

namespace heddle::dataplane {

namespace {

// DPDK logs to a stream of ours: a user sees one line of heddle's, with DPDK's reason in it. HEDDLE_DPDK_LOG=1 shows
// all.
class DpdkLog {
 public:
  void open() {
    cookie_io_functions_t io{};
    io.write = &DpdkLog::write;
    FILE* stream = fopencookie(this, "w", io);
    if (stream == nullptr) return;
    setlinebuf(stream);
    rte_openlog_stream(stream);
    echo_ = std::getenv("HEDDLE_DPDK_LOG") != nullptr;
  }
  std::string last() {
    const std::scoped_lock lock(mutex_);
    return last_;
  }

 private:
  static ssize_t write(void* self, const char* text, size_t bytes) {
    auto* log = static_cast<DpdkLog*>(self);
    std::string line(text, bytes);
    if (log->echo_) std::fwrite(text, 1, bytes, stderr);
    while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
    if (line.empty()) return static_cast<ssize_t>(bytes);
    const std::scoped_lock lock(log->mutex_);
    log->last_ = line;
    return static_cast<ssize_t>(bytes);
  }

  std::mutex mutex_;
  std::string last_;
  bool echo_ = false;
};

DpdkLog& dpdk_log() {
  static DpdkLog log;
  return log;
}

// "0@0,1@1,2@0": lcore 0 is the control thread, lcore i + 1 the worker on cpus[i].
std::string lcore_map(const EalSettings& settings, unsigned control_cpu) {
  std::string map = fmt::format("0@{}", control_cpu);
  for (size_t i = 0; i < settings.cpus.size(); ++i) map += fmt::format(",{}@{}", i + 1, settings.cpus[i]);
  return map;
}

}  // namespace

std::vector<unsigned> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  std::vector<unsigned> cpus;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void start_eal(const EalSettings& settings) {
  const std::vector<unsigned> allowed = allowed_cpus();
  std::vector<unsigned> free;
  std::copy_if(allowed.begin(), allowed.end(), std::back_inserter(free), [&](unsigned cpu) {
    return std::find(settings.cpus.begin(), settings.cpus.end(), cpu) == settings.cpus.end();
  });
  const std::vector<unsigned>& for_control = free.empty() ? allowed : free;

  std::vector<std::string> args{"heddle",
                                "--file-prefix",
                                "heddle-" + settings.name,
                                "--lcores",
                                lcore_map(settings, for_control.front()),
                                "--main-lcore",
                                "0"};
  if (!settings.pci) args.emplace_back("--no-pci");
  if (settings.hugepages) {
    args.emplace_back("--huge-unlink");
  } else {
    const uint64_t mib = (settings.memory_bytes >> 20U) + 32;  // DPDK's own tables and rounding
    for (const char* arg : {"--no-huge", "--no-shconf", "-m"}) args.emplace_back(arg);
    args.push_back(std::to_string(mib));
  }
  std::vector<char*> argv;
  argv.reserve(args.size());
  for (std::string& arg : args) argv.push_back(arg.data());

  dpdk_log().open();
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
    throw_failed("cannot start DPDK ({} memory): {}", settings.hugepages ? "hugepage" : "anonymous",
                 last_dpdk_message());
  }

  // EAL pins the calling thread to one CPU, and every thread it starts later inherits that: give it room again.
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned cpu : for_control) CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

std::vector<unsigned> worker_lcores() {
  std::vector<unsigned> lcores;
  unsigned id;
  RTE_LCORE_FOREACH_WORKER(id) { lcores.push_back(id); }
  return lcores;
}

void stop_eal() { rte_eal_cleanup(); }

std::string last_dpdk_message() { return dpdk_log().last(); }

}  // namespace heddle::dataplane
