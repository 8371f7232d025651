#include "control/server.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/address.h"
#include "control/bounded_server.h"
#include "control/requests.h"
#include "control/views.h"
#include "net/error.h"

namespace heddle::control {

namespace {

constexpr const char* kJson = "application/json";
constexpr BoundedServer::Limits kLimits;
constexpr size_t kLongestPath = 1024;

// What is not named is as the group's own.
void set_schedulers(RunningSwitch& running, const std::string& group, const Json& body) {
  const Schedulers read = read_schedulers(body);
  RouteTable::Batch batch;
  batch.set_schedulers(
      group, read.all,
      read.overrides.empty() ? nullptr : std::make_shared<const lb::SchedulerOverrides>(read.overrides));
  running.routes().apply(batch);
}

lb::NextHop hop_field(const Json& object, const RunningSwitch& running) {
  return running.next_hop(read_next_hop(object, running.config()));
}

// A list of changes, or one.
template <typename Each>
void for_each_of(const Json& body, const Each& each) {
  if (body.is_array()) {
    for (const Json& item : body) each(item);
  } else {
    each(body);
  }
}

void add_routes(RunningSwitch& running, const Json& body) {
  RouteTable::Batch batch;
  for_each_of(body, [&](const Json& item) {
    const net::IpPrefix prefix = prefix_field(item);
    if (!item.contains("via") || (!item["via"].is_string() && !item["via"].is_object())) {
      throw_bad_input("'via' is missing; accepted: a group's name, or {{port, mac, vlan}}");
    }
    if (item["via"].is_string()) {
      batch.set_route(prefix, item["via"].get<std::string>());
      return;
    }
    const lb::NextHop hop = hop_field(item["via"], running);
    Group group;
    group.name = name_in_place(running.config().ports[hop.port], hop.rewrite.destination, hop.rewrite.vlan_id);
    group.in_place = true;
    group.members.members.push_back(hop);
    batch.set_route_in_place(prefix, std::move(group));
  });
  running.routes().apply(batch);
}

void remove_routes(RunningSwitch& running, const Json& body) {
  RouteTable::Batch batch;
  for_each_of(body, [&](const Json& item) { batch.remove_route(prefix_field(item)); });
  running.routes().apply(batch);
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// An AF_UNIX socket at `path` that somebody answers.
bool is_served(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const bool answered = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return answered;
}

void claim_path(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    throw_bad_input("control socket {}: longer than {} characters", path, sizeof(sockaddr_un::sun_path) - 1);
  }
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return;
  if (!S_ISSOCK(found.st_mode)) throw_failed("control socket {}: something else is in its place", path);
  if (is_served(path)) throw_failed("control socket {}: another process serves it", path);
  unlink(path.c_str());
}

}  // namespace

struct Server::State {
  RunningSwitch& running;
  std::string path;
  BoundedServer http{kLimits};
  std::thread thread{};
  std::atomic<bool> ended{false};

  void install_views();
  void install_actions();
  void install_errors();
};

namespace {

using httplib::ContentReader;
using httplib::Request;
using httplib::Response;

// What httplib itself found wrong.
std::string describe(const Request& request, int status) {
  switch (status) {
    case 404:
      return fmt::format("no such view or action: {} {}", request.method, request.path);
    case 413:
      return fmt::format("the body is too long; accepted: up to {} MiB", kMaxBodyBytes >> 20U);
    case 414:
      return fmt::format("the path is too long; accepted: up to {} characters", kLongestPath);
    case 415:
      return fmt::format("found Content-Encoding '{}'; accepted: none", request.get_header_value("Content-Encoding"));
    case 416:
      return fmt::format("found Range '{}'; accepted: none", request.get_header_value("Range"));
    case 400:
      return fmt::format("the request is not HTTP/1.1, or was not whole within {} s",
                         std::chrono::duration_cast<std::chrono::seconds>(kLimits.request).count());
    default:
      return fmt::format("it could not be done (status {})", status);
  }
}

// Runs `action` and turns its outcome into the answer.
template <typename Action>
void answer(Response& response, const Action& action) {
  constexpr int kUnset = -1;  // httplib's
  try {
    response.set_content(answer_text(action()), kJson);
  } catch (const Error& error) {
    if (response.status == kUnset) response.status = error.kind() == Error::Kind::kBadInput ? 400 : 500;
    response.set_content(error_text(error.what()), kJson);
  } catch (const std::exception& error) {
    response.status = 500;
    response.set_content(error_text(error.what()), kJson);
  }
}

// The body, read here: httplib takes no more than 8 KiB of what curl calls a form, whatever it is. Leaves the status
// that fits, and throws, if it does not arrive whole.
std::string read_body(const Request& request, Response& response, const ContentReader& read) {
  if (request.is_multipart_form_data())
    throw_bad_input("found a form; accepted: JSON as the body, as of curl -d @FILE");
  std::string body;
  // Without either there is none (RFC 9112 6.3), and httplib would wait for the end of the connection.
  if (!request.has_header("Content-Length") && !request.has_header("Transfer-Encoding")) return body;
  bool fits = true;
  const bool is_whole = read([&](const char* data, size_t bytes) {
    fits = body.size() + bytes <= kMaxBodyBytes;
    if (fits) body.append(data, bytes);
    return fits;
  });
  if (!fits) response.status = 413;
  if (!is_whole) throw_bad_input("{}", describe(request, response.status));
  return body;
}

// A view of the switch.
template <typename View>
httplib::Server::Handler showing(View view) {
  return [view](const Request& request, Response& response) { answer(response, [&] { return view(request); }); };
}

// A change of the switch, by a body.
template <typename Change>
httplib::Server::HandlerWithContentReader changing(Change change) {
  return [change](const Request& request, Response& response, const ContentReader& read) {
    answer(response, [&] {
      change(request, parse_body(read_body(request, response, read)));
      return Json{{"done", true}};
    });
  };
}

}  // namespace

void Server::State::install_views() {
  http.Get("/ports", showing([this](const Request&) { return ports_view(running); }));
  // A person's reading (`read=1`) starts the recent peaks anew; a program that only watches does not.
  const auto read = [this](const Request& request, Json view) {
    if (request.has_param("read")) running.restart_peaks();
    return view;
  };
  http.Get("/queues",
           showing([this, read](const Request& r) { return read(r, queues_view(running, r.has_param("all"))); }));
  http.Get("/buffer",
           showing([this, read](const Request& r) { return read(r, buffer_view(running, r.has_param("all"))); }));
  http.Get("/pfc", showing([this](const Request&) { return pfc_view(running); }));
  http.Get("/watchdog", showing([this](const Request&) { return watchdog_view(running); }));
  http.Get("/ecn", showing([this](const Request&) { return ecn_view(running); }));
  http.Get("/routes", showing([this](const Request&) { return routes_view(running); }));
  http.Get("/paths", showing([this](const Request&) { return paths_view(running); }));
  http.Get("/drops", showing([this](const Request&) { return drops_view(running); }));
  http.Get("/totals", showing([this](const Request&) { return totals_view(running); }));
}

void Server::State::install_actions() {
  http.Post("/routes", changing([this](const Request&, const Json& body) { add_routes(running, body); }));
  http.Delete("/routes", changing([this](const Request&, const Json& body) { remove_routes(running, body); }));
  http.Post("/groups/([^/]+)/scheduler", changing([this](const Request& request, const Json& body) {
              set_schedulers(running, request.matches[1], body);
            }));
  http.Post("/groups/([^/]+)/members", changing([this](const Request& request, const Json& body) {
              RouteTable::Batch batch;
              batch.add_member(request.matches[1], hop_field(body, running));
              running.routes().apply(batch);
            }));
  http.Delete("/groups/([^/]+)/members", changing([this](const Request& request, const Json& body) {
                RouteTable::Batch batch;
                batch.remove_member(request.matches[1], hop_field(body, running));
                running.routes().apply(batch);
              }));
}

void Server::State::install_errors() {
  // The patterns below are matched by recursion, character by character.
  http.set_pre_routing_handler([](const Request& request, Response& response) {
    using Outcome = httplib::Server::HandlerResponse;
    if (request.path.size() <= kLongestPath) return Outcome::Unhandled;
    response.status = 414;
    return Outcome::Handled;
  });
  // The body of what is no action is not even read.
  const auto no_action = [](const Request&, Response& response, const ContentReader&) { response.status = 404; };
  http.Post(".*", no_action);
  http.Put(".*", no_action);
  http.Patch(".*", no_action);
  http.Delete(".*", no_action);
  http.set_error_handler([](const Request& request, Response& response) {
    if (response.body.empty()) response.set_content(error_text(describe(request, response.status)), kJson);
  });
}

Server::Server(RunningSwitch& running, const std::string& path) : state_(new State{running, path}) {
  claim_path(path);
  BoundedServer& http = state_->http;
  http.set_address_family(AF_UNIX);
  http.set_payload_max_length(kMaxBodyBytes);
  state_->install_views();
  state_->install_actions();
  state_->install_errors();
  const mode_t before = umask(0117);  // the socket is born with mode 0660
  const bool bound = http.bind_to_port(path, 80);
  umask(before);
  if (!bound) {
    throw_failed("cannot listen at control socket {}{}; `control: PATH` in the configuration names another place", path,
                 access(folder_of(path).c_str(), W_OK) == 0 ? "" : ": its folder cannot be written");
  }
  state_->thread = std::thread([this] {
    state_->http.listen_after_bind();
    state_->ended = true;
  });
  // end() does nothing to a server that has not begun to run: it would then run for ever.
  while (!http.is_running() && !state_->ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Server::~Server() {
  state_->http.end();
  state_->thread.join();
  unlink(state_->path.c_str());
}

}  // namespace heddle::control
