#include "lab/subnet/child_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/error.h"

namespace heddle::lab {
namespace {

// Pointers to texts, ending with a null, as execve wants them.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> environment(const ChildCommand& command) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    bool replaced = false;
    for (const auto& [name, value] : command.variables) {
      replaced |= text.substr(0, name.size()) == name && text.substr(name.size(), 1) == "=";
    }
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : command.variables) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

// Between fork and exec only what is safe in a process that had several threads.
[[noreturn]] void become(pid_t parent, const char* directory, int output, char* const* words, char* const* variables) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const bool ready = getppid() == parent && chdir(directory) == 0 && dup2(input, STDIN_FILENO) >= 0 &&
                     dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0;
  if (ready) execve(words[0], words, variables);
  _exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const ChildCommand& command) {
  std::vector<std::string> words = command.words;
  std::vector<std::string> variables = environment(command);
  const std::vector<char*> word_list = pointers(words);
  const std::vector<char*> variable_list = pointers(variables);
  const int output = open(command.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (output < 0) throw_failed("{}: {}", command.output, std::strerror(errno));
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(parent, command.directory.c_str(), output, word_list.data(), variable_list.data());
  const int problem = errno;
  close(output);
  if (pid_ < 0) throw_failed("{} cannot be started: {}", words[0], std::strerror(problem));
  setpgid(pid_, pid_);  // whoever of the two comes first
  pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
}

ChildProcess::~ChildProcess() {
  if (!status_) {
    kill(-pid_, SIGTERM);
    if (!wait(std::chrono::seconds(1))) {
      kill(-pid_, SIGKILL);
      wait(std::chrono::hours(1));
    }
  }
  if (pidfd_ >= 0) close(pidfd_);
}

std::optional<int> ChildProcess::wait(std::chrono::milliseconds time) {
  if (status_) return status_;
  const auto end = std::chrono::steady_clock::now() + time;
  while (true) {
    int state = 0;
    if (waitpid(pid_, &state, WNOHANG) == pid_) {
      status_ = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
      return status_;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    // Without a pidfd (Linux before 5.3), looked at every 5 ms.
    pollfd event{pidfd_, POLLIN, 0};
    const auto most = pidfd_ >= 0 ? left.count() : std::min<long>(left.count(), 5);
    poll(&event, pidfd_ >= 0 ? 1 : 0, static_cast<int>(std::min<long>(most, 60'000)));
  }
}

}  // namespace heddle::lab
