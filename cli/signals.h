// SIGINT and SIGTERM as something to wait for.
#pragma once

#include <chrono>

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace heddle::cli {

// Made before any thread starts, so that all inherit the blocked signals.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    fd_ = signalfd(-1, &set, SFD_CLOEXEC);
  }
  ~Signals() { close(fd_); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // True if one came within `time`.
  bool wait(std::chrono::milliseconds time) const {
    pollfd event{fd_, POLLIN, 0};
    return poll(&event, 1, static_cast<int>(time.count())) > 0;
  }

 private:
  int fd_;
};

}  // namespace heddle::cli
