// A client of a running switch's control socket (control/server.h).
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace heddle::cli {

using Json = nlohmann::ordered_json;

class Client {
 public:
  // Talks to the socket `named`; to the only one in /run/heddle if that is empty. Throws Error (bad input) if there is
  // none or more than one.
  explicit Client(const std::string& named);

  // What GET `path` answers. Throws Error (failed) if nobody answers or the answer is an error.
  Json get(const std::string& path) const;

  const std::string& socket() const { return socket_; }

 private:
  std::string socket_;
};

}  // namespace heddle::cli
