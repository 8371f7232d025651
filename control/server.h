// The control socket of a running switch: HTTP and JSON on a Unix socket.
//
//   GET    /ports /queues[?all=1] /buffer[?all=1] /pfc /ecn /routes /paths /drops /totals    views (control/views.h);
//          /queues and /buffer with read=1 start their recent peaks anew
//   POST   /routes               {"prefix": P, "via": GROUP | {"port", "mac", "vlan"}}    add or replace; also a list
//   DELETE /routes               {"prefix": P}                                            also a list
//   POST   /groups/NAME/members  {"port", "mac", "vlan": 0, "weight": 1}                  add or replace
//   DELETE /groups/NAME/members  {"port", "mac", "vlan": 0}
//
// Errors answer 400 (bad request: what was found, what is accepted), 404, 413, 414 or 500 with {"error": "one line"}.
#pragma once

#include <memory>
#include <string>

#include "control/running_switch.h"

namespace heddle::control {

class Server {
 public:
  // Listens at `path` (mode 0660), replacing a socket that nobody serves any more. Throws Error (failed) if the path is
  // in use by a living process or cannot be made.
  Server(RunningSwitch& running, const std::string& path);
  // Stops serving, whoever is connected (control/bounded_server.h), and removes the socket.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle::control
