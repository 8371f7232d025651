#include "cli/client.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/error.h"

namespace heddle::cli {

namespace {

constexpr const char* kDefaultPlace = "/run/heddle";
constexpr int kPatienceSeconds = 5;

std::string find_socket(const std::string& named) {
  if (!named.empty()) return named;
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(kDefaultPlace, ignored)) {
    if (entry.is_socket(ignored)) found.push_back(entry.path());
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    throw_bad_input("no switch found in {}; name its control socket with --socket", kDefaultPlace);
  }
  std::sort(found.begin(), found.end());
  throw_bad_input("{} switches found in {}; choose one with --socket: {}", found.size(), kDefaultPlace,
                  fmt::join(found, ", "));
}

}  // namespace

Client::Client(const std::string& named) : socket_(find_socket(named)) {}

Json Client::get(const std::string& path) const {
  httplib::Client client(socket_);
  client.set_address_family(AF_UNIX);
  client.set_read_timeout(kPatienceSeconds);
  const auto answer = client.Get(path);
  if (!answer) {
    if (access(socket_.c_str(), R_OK | W_OK) != 0) throw_failed("{}: {}", socket_, std::strerror(errno));
    throw_failed("no switch answers at {}", socket_);
  }
  Json view = Json::parse(answer->body, nullptr, false);
  if (answer->status != 200 || view.is_discarded()) throw_failed("{} answered: {}", socket_, answer->body);
  return view;
}

}  // namespace heddle::cli
