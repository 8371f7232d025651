// An HTTP server in which nobody can take up more than a little of it, for more than a short time. httplib's own bounds
// the wait for each single byte: a client that sends one a second holds a thread, and the end of the server, for as
// long as it likes. Here a whole request has a time to arrive in, and its answer one to be taken; a connection carries
// one request; what arrives is limited; and an end waits for nobody.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>

#include <httplib.h>

namespace heddle::control {

class BoundedServer : public httplib::Server {
 public:
  struct Limits {
    std::chrono::milliseconds request{3000};  // until all of it is here
    std::chrono::milliseconds answer{3000};   // until all of it is taken
    std::chrono::milliseconds farewell{200};  // the same, once the end has come
    size_t head_bytes = size_t{64} << 10U;    // of the request line and its headers
    size_t body_bytes = size_t{64} << 20U;    // on the wire, refused ones included
    size_t threads = 8;                       // so many slow clients, and the next one waits for the first of them
  };

  explicit BoundedServer(Limits limits);

  // In place of stop(): also ends connections; none has more time than `farewell` from then on. Any thread.
  void end();

 private:
  bool process_and_close_socket(socket_t fd) override;

  Limits limits_;
  std::atomic<bool> ending_{false};
};

}  // namespace heddle::control
