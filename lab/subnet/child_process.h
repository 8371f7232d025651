// Another program, run for a bounded time: started in a process group of its own, ended with it, and ended if this
// process dies.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace heddle::lab {

struct ChildCommand {
  std::vector<std::string> words;                                // the program's path first
  std::vector<std::pair<std::string, std::string>> variables{};  // of the environment, beside ours
  std::string directory;                                         // it works in
  std::string output;                                            // the file that its standard output and error go to
};

class ChildProcess {
 public:
  // Throws Error (failed) if it cannot be started. A program that cannot be executed ends with status 127.
  explicit ChildProcess(const ChildCommand& command);
  // Ends it: SIGTERM to the group, and SIGKILL if that takes longer than a second.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The exit status (128 + N after signal N) if it ends within `time`; nothing if it runs on.
  std::optional<int> wait(std::chrono::milliseconds time);

 private:
  pid_t pid_ = -1;
  int pidfd_ = -1;
  std::optional<int> status_;
};

}  // namespace heddle::lab
