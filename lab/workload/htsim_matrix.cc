// Connection matrices of htsim (.cm); import.h describes the format.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lab/workload/builder.h"
#include "lab/workload/flow_text.h"
#include "lab/workload/import.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

constexpr uint64_t kMaxId = 0xffffffff;
// A multishot needs a trigger from every cause to every connection; real ones have a handful of each.
constexpr uint64_t kMaxMultishotPairs = uint64_t{1} << 24U;

enum class Shot : uint8_t { kUnspecified, kOneshot, kMultishot, kBarrier };

struct TriggerSpec {
  Shot shot = Shot::kUnspecified;
  uint64_t count = 0;
  int line = 0;  // where it is specified, until then where it is first named
  std::vector<Cause> causes;
  std::vector<MessageId> starts;
};

// Everything a file says, connections already in the builder.
class Matrix {
 public:
  Matrix(std::string_view text, const std::string& file, const ImportOptions& options)
      : reader_(text, file),
        file_(file),
        options_(options),
        builder_(options.host_count == 0 ? kMaxImportedHosts : options.host_count) {
    builder_.add_job(job_name(file), false);
  }

  ImportedWorkload read();

 private:
  void read_line();
  void read_connection(size_t arrow);
  void read_trigger();
  void read_failure();
  void check_counts() const;
  void connect_triggers();
  void check_trigger(uint64_t id, const TriggerSpec& trigger) const;
  void connect_all_to_all(const TriggerSpec& trigger);
  void connect_multishot(const TriggerSpec& trigger);

  TriggerSpec& trigger_named(uint64_t id) {
    TriggerSpec& trigger = triggers_[id];
    if (trigger.line == 0) trigger.line = reader_.line();
    return trigger;
  }
  std::string_view word(size_t index, std::string_view what) const { return word_at(reader_, words_, index, what); }
  uint64_t whole(size_t index, std::string_view what, uint64_t least, uint64_t most) const {
    return reader_.whole(word(index, what), what, least, most);
  }

  TextReader reader_;
  const std::string& file_;
  std::vector<std::string_view> words_;
  const ImportOptions& options_;
  WorkloadBuilder builder_;
  ImportedWorkload imported_;
  std::map<uint64_t, TriggerSpec> triggers_;
  std::vector<int> line_of_;  // by message
  std::optional<uint64_t> nodes_;
  std::optional<uint64_t> connections_;
  std::optional<uint64_t> trigger_count_;
  std::optional<uint64_t> failure_count_;
  uint64_t triggers_read_ = 0;
  HostId highest_host_ = 0;
};

ImportedWorkload Matrix::read() {
  while (next_statement(reader_, words_)) read_line();
  check_counts();
  connect_triggers();
  imported_.workload = builder_.link();
  if (options_.host_count == 0) {
    imported_.workload.host_count = static_cast<uint32_t>(nodes_.value_or(highest_host_ + uint64_t{1}));
  }
  if (const auto on_cycle = find_cycle(imported_.workload)) {
    throw_bad_input("{}:{}: waits for itself through a cycle of triggers", file_, line_of_[*on_cycle]);
  }
  check_workload(imported_.workload, file_);
  return std::move(imported_);
}

void Matrix::read_line() {
  const std::string_view first = words_[0];
  if (const size_t arrow = first.find("->"); arrow != std::string_view::npos) {
    read_connection(arrow);
  } else if (first == "trigger") {
    read_trigger();
  } else if (first == "failure") {
    read_failure();
  } else if (first == "Nodes") {
    if (builder_.message_count() != 0) reader_.fail("Nodes after a connection; accepted: before all of them");
    nodes_ = whole(1, "number of nodes", 2, kMaxImportedHosts);
    if (options_.host_count != 0 && *nodes_ > options_.host_count) {
      reader_.fail("{} nodes; accepted: at most the topology's {} hosts", *nodes_, options_.host_count);
    }
  } else if (first == "Connections") {
    connections_ = whole(1, "number of connections", 0, kMaxMessages);
  } else if (first == "Triggers") {
    trigger_count_ = whole(1, "number of triggers", 0, kMaxMessages);
  } else if (first == "Failures") {
    failure_count_ = whole(1, "number of failures", 0, kMaxMessages);
  } else {
    reader_.fail("{}; accepted: a connection src->dst …, trigger, failure, Nodes, Connections, Triggers or Failures",
                 quoted(first));
  }
}

void Matrix::read_connection(size_t arrow) {
  const std::string_view pair = words_[0];
  const uint64_t last = nodes_.value_or(builder_.host_count()) - 1;
  const auto src = static_cast<HostId>(reader_.whole(pair.substr(0, arrow), "source", 0, last));
  const auto dst = static_cast<HostId>(reader_.whole(pair.substr(arrow + 2), "destination", 0, last));
  if (src == dst) reader_.fail("node {} cannot send to itself", src);
  const auto message = static_cast<MessageId>(builder_.message_count());
  uint64_t bytes = 0;
  std::optional<double> start;
  std::optional<uint64_t> started_by;
  for (size_t i = 1; i < words_.size(); i += 2) {
    const std::string_view key = words_[i];
    if (key == "start") {  // whole picoseconds, but generators also write 1.5e+06
      start = reader_.real(word(i + 1, key), key, 0, static_cast<double>(kMaxDelay));
    } else if (key == "size") {
      bytes = whole(i + 1, "size", 1, kMaxMessageBytes);
    } else if (key == "trigger") {
      started_by = whole(i + 1, key, 1, kMaxId);
    } else if (key == "send_done_trigger") {
      trigger_named(whole(i + 1, key, 1, kMaxId)).causes.push_back({message, TriggerOn::kSent});
    } else if (key == "recv_done_trigger") {
      trigger_named(whole(i + 1, key, 1, kMaxId)).causes.push_back({message, TriggerOn::kReceived});
    } else if (key == "id") {
      whole(i + 1, key, 1, kMaxId);
    } else if (key == "prio") {
      whole(i + 1, key, 0, kMaxId);
      if (imported_.warnings.empty()) {
        imported_.warnings.push_back(fmt::format("{}:{}: prio has no effect", file_, reader_.line()));
      }
    } else {
      reader_.fail("{}; accepted: id, start, trigger, size, send_done_trigger, recv_done_trigger, prio", quoted(key));
    }
  }
  if (bytes == 0) reader_.fail("no size; accepted: at least 1 byte, endless connections do not exist here");
  if (start.has_value() == started_by.has_value()) reader_.fail("accepted: either a start or a trigger");
  builder_.add_message(src, dst, bytes, static_cast<Time>(start.value_or(0)));
  line_of_.push_back(reader_.line());
  if (started_by) trigger_named(*started_by).starts.push_back(message);
  highest_host_ = std::max({highest_host_, src, dst});
}

void Matrix::read_trigger() {
  std::optional<uint64_t> id;
  Shot shot = Shot::kUnspecified;
  uint64_t count = 0;
  for (size_t i = 1; i < words_.size(); ++i) {
    const std::string_view key = words_[i];
    if (key == "id") {
      id = whole(++i, "trigger id", 1, kMaxId);
    } else if (key == "count") {
      count = whole(++i, "count", 1, kMaxMessages);
    } else if (key == "oneshot" || key == "multishot" || key == "barrier") {
      if (shot != Shot::kUnspecified) reader_.fail("accepted: one of oneshot, multishot and barrier, not two");
      shot = key == "oneshot" ? Shot::kOneshot : key == "multishot" ? Shot::kMultishot : Shot::kBarrier;
    } else {
      reader_.fail("{}; accepted: id, count, oneshot, multishot, barrier", quoted(key));
    }
  }
  if (!id) reader_.fail("a trigger without id");
  if (shot == Shot::kUnspecified) reader_.fail("a trigger without kind; accepted: oneshot, multishot, barrier");
  if (shot == Shot::kBarrier && count == 0) reader_.fail("a barrier without count; accepted: at least 1");
  TriggerSpec& trigger = trigger_named(*id);
  if (trigger.shot != Shot::kUnspecified) {
    reader_.fail("trigger {} is specified a second time, first in line {}", *id, trigger.line);
  }
  trigger.shot = shot;
  trigger.count = count;
  trigger.line = reader_.line();
  ++triggers_read_;
}

void Matrix::read_failure() {
  HtsimFailure failure;
  for (size_t i = 1; i < words_.size(); i += 2) {
    const std::string_view key = words_[i];
    if (key == "switch_type") {
      failure.switch_type = word(i + 1, key);
      if (failure.switch_type != "TOR" && failure.switch_type != "AGG" && failure.switch_type != "CORE") {
        reader_.fail("switch_type {}; accepted: TOR, AGG, CORE", quoted(failure.switch_type));
      }
    } else if (key == "switch_id") {
      failure.switch_id = static_cast<uint32_t>(whole(i + 1, key, 0, kMaxImportedHosts));
    } else if (key == "link_id") {
      failure.link_id = static_cast<uint32_t>(whole(i + 1, key, 0, kMaxImportedHosts));
    } else {
      reader_.fail("{}; accepted: switch_type, switch_id, link_id", quoted(key));
    }
  }
  if (failure.switch_type.empty()) reader_.fail("a failure without switch_type; accepted: TOR, AGG, CORE");
  imported_.failures.push_back(failure);
}

void Matrix::check_counts() const {
  const auto check = [this](const std::optional<uint64_t>& said, uint64_t found, const char* what) {
    if (said && *said != found) throw_bad_input("{}: says {} {} and holds {}", file_, *said, what, found);
  };
  check(connections_, builder_.message_count(), "connections");
  check(trigger_count_, triggers_read_, "triggers");
  check(failure_count_, imported_.failures.size(), "failures");
  if (builder_.message_count() == 0) throw_bad_input("{}: holds no connections", file_);
}

void Matrix::connect_triggers() {
  for (const auto& [id, trigger] : triggers_) {
    check_trigger(id, trigger);
    if (trigger.starts.empty()) continue;
    if (trigger.shot == Shot::kMultishot) {
      connect_multishot(trigger);
    } else {
      connect_all_to_all(trigger);
    }
  }
}

void Matrix::check_trigger(uint64_t id, const TriggerSpec& trigger) const {
  const auto refuse = [&](const std::string& why) {
    throw_bad_input("{}:{}: trigger {} {}", file_, trigger.line, id, why);
  };
  const size_t causes = trigger.causes.size();
  if (trigger.shot == Shot::kUnspecified) refuse("is named but not specified: a line `trigger id …` is needed");
  if (!trigger.starts.empty() && causes == 0) refuse("never fires: no send_done_trigger or recv_done_trigger names it");
  if (trigger.shot == Shot::kOneshot && causes > 1) refuse(fmt::format("is a oneshot but fires {} times", causes));
  if (trigger.shot == Shot::kBarrier &&
      (causes > trigger.count || (causes < trigger.count && !trigger.starts.empty()))) {
    refuse(fmt::format("is a barrier of count {}, but {} connections name it", trigger.count, causes));
  }
  if (trigger.shot == Shot::kMultishot && trigger.starts.size() > causes) {
    refuse(fmt::format("starts {} connections, one each time it fires, but fires {} times", trigger.starts.size(),
                       causes));
  }
}

void Matrix::connect_all_to_all(const TriggerSpec& trigger) {
  std::vector<Cause> causes = trigger.causes;
  if (causes.size() > 1 && trigger.starts.size() > 1) {
    const MessageId meeting = builder_.add_barrier(builder_.source_of(trigger.starts.front()));
    line_of_.push_back(trigger.line);
    for (const Cause& cause : causes) builder_.add_trigger(cause, meeting);
    causes = {{meeting, TriggerOn::kReceived}};
  }
  for (const MessageId started : trigger.starts) {
    for (const Cause& cause : causes) builder_.add_trigger(cause, started);
  }
}

void Matrix::connect_multishot(const TriggerSpec& trigger) {
  if (uint64_t{trigger.causes.size()} * trigger.starts.size() > kMaxMultishotPairs) {
    throw_bad_input("{}:{}: a multishot of {} causes and {} connections; accepted: a product of at most {}", file_,
                    trigger.line, trigger.causes.size(), trigger.starts.size(), kMaxMultishotPairs);
  }
  for (uint32_t k = 0; k < trigger.starts.size(); ++k) {
    for (const Cause& cause : trigger.causes) builder_.add_trigger(cause, trigger.starts[k]);
    builder_.release_after(trigger.starts[k], k + 1);
  }
}

}  // namespace

ImportedWorkload import_htsim_matrix(std::string_view text, const std::string& file, const ImportOptions& options) {
  return Matrix(text, file, options).read();
}

}  // namespace heddle::lab
