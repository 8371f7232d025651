#include "control/server.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include <httplib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/address.h"
#include "control/requests.h"
#include "control/views.h"
#include "net/error.h"

namespace heddle::control {

namespace {

constexpr const char* kJson = "application/json";

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
    const std::string vlan = hop.rewrite.vlan_id == 0 ? "" : "." + std::to_string(hop.rewrite.vlan_id);
    group.name = running.config().ports[hop.port].name + vlan + "/" + config::print_mac(hop.rewrite.destination);
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
  httplib::Server http{};
  std::thread thread{};
  std::atomic<bool> ended{false};

  void install_handlers();

  // Runs `action` and turns its outcome into the answer.
  template <typename Action>
  httplib::Server::Handler answer(Action action) {
    return [action](const httplib::Request& request, httplib::Response& response) {
      try {
        response.set_content(answer_text(action(request)), kJson);
      } catch (const Error& error) {
        response.status = error.kind() == Error::Kind::kBadInput ? 400 : 500;
        response.set_content(error_text(error.what()), kJson);
      } catch (const std::exception& error) {
        response.status = 500;
        response.set_content(error_text(error.what()), kJson);
      }
    };
  }
};

void Server::State::install_handlers() {
  using Request = httplib::Request;
  http.Get("/ports", answer([this](const Request&) { return ports_view(running); }));
  // A person's reading (`read=1`) starts the recent peaks anew; a program that only watches does not.
  const auto read = [this](const Request& request, Json view) {
    if (request.has_param("read")) running.restart_peaks();
    return view;
  };
  http.Get("/queues",
           answer([this, read](const Request& r) { return read(r, queues_view(running, r.has_param("all"))); }));
  http.Get("/buffer",
           answer([this, read](const Request& r) { return read(r, buffer_view(running, r.has_param("all"))); }));
  http.Get("/pfc", answer([this](const Request&) { return pfc_view(running); }));
  http.Get("/watchdog", answer([this](const Request&) { return watchdog_view(running); }));
  http.Get("/ecn", answer([this](const Request&) { return ecn_view(running); }));
  http.Get("/routes", answer([this](const Request&) { return routes_view(running); }));
  http.Get("/paths", answer([this](const Request&) { return paths_view(running); }));
  http.Get("/drops", answer([this](const Request&) { return drops_view(running); }));
  http.Get("/totals", answer([this](const Request&) { return totals_view(running); }));
  http.Post("/routes", answer([this](const Request& request) {
              add_routes(running, parse_body(request.body));
              return Json{{"done", true}};
            }));
  http.Delete("/routes", answer([this](const Request& request) {
                remove_routes(running, parse_body(request.body));
                return Json{{"done", true}};
              }));
  http.Post("/groups/([^/]+)/scheduler", answer([this](const Request& request) {
              set_schedulers(running, request.matches[1], parse_body(request.body));
              return Json{{"done", true}};
            }));
  http.Post("/groups/([^/]+)/members", answer([this](const Request& request) {
              RouteTable::Batch batch;
              batch.add_member(request.matches[1], hop_field(parse_body(request.body), running));
              running.routes().apply(batch);
              return Json{{"done", true}};
            }));
  http.Delete("/groups/([^/]+)/members", answer([this](const Request& request) {
                RouteTable::Batch batch;
                batch.remove_member(request.matches[1], hop_field(parse_body(request.body), running));
                running.routes().apply(batch);
                return Json{{"done", true}};
              }));
  http.set_error_handler([](const Request& request, httplib::Response& response) {
    if (!response.body.empty()) return;
    response.set_content(error_text("no such view or action: " + request.method + " " + request.path), kJson);
  });
}

Server::Server(RunningSwitch& running, const std::string& path) : state_(new State{running, path}) {
  claim_path(path);
  httplib::Server& http = state_->http;
  // Two threads suffice for a control socket, and the default pool takes one per CPU away from nobody but us.
  http.new_task_queue = [] { return new httplib::ThreadPool(2); };
  http.set_address_family(AF_UNIX);
  state_->install_handlers();
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
  // httplib's stop() does nothing to a server that has not begun to run: it would then run for ever.
  while (!http.is_running() && !state_->ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Server::~Server() {
  state_->http.stop();
  state_->thread.join();
  unlink(state_->path.c_str());
}

}  // namespace heddle::control
