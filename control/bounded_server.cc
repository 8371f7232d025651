#include "control/bounded_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace heddle::control {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// One connection as httplib reads and writes it.
class Connection : public httplib::Stream {
 public:
  Connection(int fd, const BoundedServer::Limits& limits, const std::atomic<bool>& ending)
      : fd_(fd),
        limits_(limits),
        ending_(ending),
        arrives_until_(Clock::now() + limits.request),
        room_(limits.head_bytes) {}

  bool is_readable() const override { return begin_ < end_ || wait(POLLIN, arrives_until_); }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  socket_t socket() const override { return fd_; }

  void head_is_read() { room_ = limits_.body_bytes; }
  void part();

 private:
  bool wait(short events, Clock::time_point until) const;

  int fd_;
  const BoundedServer::Limits& limits_;
  const std::atomic<bool>& ending_;
  Clock::time_point arrives_until_;
  std::optional<Clock::time_point> taken_until_;  // while writing
  size_t room_;                                   // bytes that may still arrive
  std::array<char, 4096> buffer_{};
  size_t begin_ = 0;
  size_t end_ = 0;
};

// True when the socket is ready. When the end comes, what is still to arrive has no more time, and answers have little.
bool Connection::wait(short events, Clock::time_point until) const {
  constexpr milliseconds kLook(20);  // for the end
  bool ending = false;
  for (;;) {
    const auto now = Clock::now();
    if (!ending && ending_.load()) {
      if (events == POLLIN) return false;
      until = std::min(until, now + limits_.farewell);
      ending = true;
    }
    const auto left = std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(until - now));
    pollfd ready{fd_, events, 0};
    if (poll(&ready, 1, static_cast<int>(std::min(left, kLook).count())) > 0) return true;
    if (now >= until) return false;
  }
}

ssize_t Connection::read(char* to, size_t size) {
  taken_until_.reset();
  if (begin_ == end_) {
    if (room_ == 0 || Clock::now() >= arrives_until_ || !wait(POLLIN, arrives_until_)) return -1;
    const ssize_t got = recv(fd_, buffer_.data(), std::min(buffer_.size(), room_), MSG_DONTWAIT);
    if (got <= 0) return got;
    begin_ = 0;
    end_ = static_cast<size_t>(got);
    room_ -= end_;
  }
  const size_t taken = std::min(size, end_ - begin_);
  std::copy_n(buffer_.data() + begin_, taken, to);
  begin_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t Connection::write(const char* from, size_t size) {
  if (!taken_until_) taken_until_ = Clock::now() + limits_.answer;
  for (;;) {
    if (!wait(POLLOUT, *taken_until_)) return -1;
    const ssize_t put = send(fd_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put > 0) return put;
    if (errno != EAGAIN && errno != EINTR) return -1;
  }
}

// A client that still sends is heard out for a while: closed on it, it would see a broken pipe before the answer.
void Connection::part() {
  constexpr milliseconds kPause(100);
  shutdown(fd_, SHUT_WR);
  std::array<char, 65536> rest;
  while (Clock::now() < arrives_until_ && wait(POLLIN, std::min(arrives_until_, Clock::now() + kPause))) {
    if (recv(fd_, rest.data(), rest.size(), MSG_DONTWAIT) <= 0) break;
  }
}

}  // namespace

BoundedServer::BoundedServer(Limits limits) : limits_(limits) {
  new_task_queue = [this] { return new httplib::ThreadPool(limits_.threads); };
}

void BoundedServer::end() {
  ending_ = true;
  stop();
}

bool BoundedServer::process_and_close_socket(socket_t fd) {
  Connection connection(fd, limits_, ending_);
  bool is_answered = false;
  bool closes = false;  // httplib's word on the next request, which there is not
  try {
    is_answered =
        process_request(connection, true, closes, [&](httplib::Request& /*request*/) { connection.head_is_read(); });
  } catch (const std::exception&) {
    // Whatever a request sets off outside a handler ends with its connection.
  }
  connection.part();
  close(fd);
  return is_answered;
}

}  // namespace heddle::control
