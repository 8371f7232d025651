#include "control/link_watch.h"

#include <memory>

#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <poll.h>

#include "net/error.h"

namespace heddle::control {

using dataplane::LinkSource;

// Two sockets: events come on the first, the state of all links is asked for on the second. An event only says "look".
struct LinkWatch::Netlink {
  struct Freed {
    void operator()(nl_sock* socket) const { nl_socket_free(socket); }
  };
  std::unique_ptr<nl_sock, Freed> events{nl_socket_alloc()};
  std::unique_ptr<nl_sock, Freed> queries{nl_socket_alloc()};

  Netlink() {
    nl_socket_disable_seq_check(events.get());
    if (nl_connect(events.get(), NETLINK_ROUTE) < 0 || nl_connect(queries.get(), NETLINK_ROUTE) < 0 ||
        nl_socket_add_membership(events.get(), RTNLGRP_LINK) < 0) {
      throw_failed("cannot follow link state: netlink refused the subscription");
    }
    nl_socket_set_nonblocking(events.get());
  }

  // Empties the event socket without reading what it says. True if there was anything.
  bool take_events() {
    char buffer[16384];
    bool any = false;
    while (recv(nl_socket_get_fd(events.get()), buffer, sizeof buffer, MSG_DONTWAIT) > 0) any = true;
    return any;
  }
};

LinkWatch::LinkWatch(std::vector<Watched> ports, dataplane::PortStates& states, OnChange on_change)
    : ports_(std::move(ports)), states_(states) {
  for (const Watched& watched : ports_) {
    if (watched.source == LinkSource::kNetlink && !netlink_) netlink_ = std::make_unique<Netlink>();
  }
  look_at_drivers();
  if (netlink_) read_kernel_links();
  on_change_ = std::move(on_change);
  thread_ = std::thread([this] { run(); });
}

LinkWatch::~LinkWatch() {
  stop_.store(true);
  thread_.join();
}

void LinkWatch::run() {
  constexpr int kPeriodMs = 10;
  // Events can be lost when the socket overflows: look again every second without one.
  constexpr int kLookAgain = 100;
  int quiet = 0;
  while (!stop_.load()) {
    pollfd event{netlink_ ? nl_socket_get_fd(netlink_->events.get()) : -1, POLLIN, 0};
    poll(&event, 1, kPeriodMs);
    look_at_drivers();
    if (netlink_ && (netlink_->take_events() || ++quiet == kLookAgain)) {
      read_kernel_links();
      quiet = 0;
    }
  }
}

void LinkWatch::set(const Watched& watched, bool up) {
  if (states_.is_up(watched.port) == up) return;
  states_.set(watched.port, up);
  if (on_change_) on_change_(watched.port, up);
}

void LinkWatch::look_at_drivers() {
  for (const Watched& watched : ports_) {
    if (watched.source == LinkSource::kEthdev) set(watched, watched.device->driver_link_up());
  }
}

// A link can carry frames when it is administratively up and has its carrier (RFC 2863 operational status).
void LinkWatch::read_kernel_links() {
  nl_cache* cache = nullptr;
  if (rtnl_link_alloc_cache(netlink_->queries.get(), AF_UNSPEC, &cache) < 0) return;
  for (const Watched& watched : ports_) {
    if (watched.source != LinkSource::kNetlink) continue;
    rtnl_link* link = rtnl_link_get_by_name(cache, watched.netdev.c_str());
    const unsigned flags = link == nullptr ? 0 : rtnl_link_get_flags(link);
    set(watched, (flags & IFF_UP) != 0 && (flags & IFF_LOWER_UP) != 0);
    if (link != nullptr) rtnl_link_put(link);
  }
  nl_cache_free(cache);
}

}  // namespace heddle::control
