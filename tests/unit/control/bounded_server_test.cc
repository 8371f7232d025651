// What a client may take of the server behind the control socket, and for how long.
#include "control/bounded_server.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace heddle::control {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kNever(60'000);

class Client {
 public:
  explicit Client(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // False if the server takes no more.
  bool say(const std::string& text) const {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // All that comes until the server closes.
  std::string hear() const {
    std::string all;
    char buffer[4096];
    for (ssize_t got = 0; (got = recv(fd_, buffer, sizeof buffer, 0)) > 0;)
      all.append(buffer, static_cast<size_t>(got));
    return all;
  }
  char hear_one() const {
    char byte = 0;
    recv(fd_, &byte, 1, 0);
    return byte;
  }

 private:
  int fd_;
};

class BoundedServerTest : public ::testing::Test {
 protected:
  ~BoundedServerTest() override {
    if (server) server->end();
    if (thread.joinable()) thread.join();
    unlink(path.c_str());
  }

  void serve(const BoundedServer::Limits& limits) {
    server = std::make_unique<BoundedServer>(limits);
    server->set_address_family(AF_UNIX);
    server->Get("/short", [](const auto&, auto& response) { response.set_content("here", "text/plain"); });
    server->Get("/long", [](const auto&, auto& response) {
      response.set_content(std::string(size_t{8} << 20U, 'x'), "text/plain");
    });
    server->Post("/count", [](const auto& request, auto& response) {
      response.set_content(std::to_string(request.body.size()), "text/plain");
    });
    server->set_error_handler([](const auto& request, auto&) {
      if (request.path == "/throw") throw std::runtime_error("outside every try of httplib");
    });
    ASSERT_TRUE(server->bind_to_port(path, 80));
    thread = std::thread([this] { server->listen_after_bind(); });
    while (!server->is_running()) std::this_thread::yield();
  }

  std::string path = std::filesystem::temp_directory_path() / ("bounded-" + std::to_string(getpid()) + ".sock");
  std::unique_ptr<BoundedServer> server;
  std::thread thread;
};

TEST_F(BoundedServerTest, OneRequestAConnection) {
  serve({});
  const Client client(path);
  client.say("GET /short HTTP/1.1\r\n\r\nGET /short HTTP/1.1\r\n\r\n");
  const std::string answer = client.hear();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(answer.find("here"), answer.rfind("here"));
}

// A byte now and then does not keep a thread: the time is the whole request's.
TEST_F(BoundedServerTest, SlowRequestsEnd) {
  serve({.request = milliseconds(200), .threads = 1});
  const Client slow(path);
  slow.say("GET /short HTTP/1.1\r\n");
  const auto began = Clock::now();
  std::string quick_answer;
  std::thread other([&] {
    const Client quick(path);
    quick.say("GET /short HTTP/1.1\r\n\r\n");
    quick_answer = quick.hear();
  });
  while (slow.say("X") && Clock::now() - began < kNever) std::this_thread::sleep_for(milliseconds(10));
  other.join();
  EXPECT_LT(Clock::now() - began, milliseconds(5000));
  EXPECT_THAT(quick_answer, HasSubstr("here"));
}

TEST_F(BoundedServerTest, AnswersThatNobodyTakesEnd) {
  serve({.request = kNever, .answer = milliseconds(200), .threads = 1});
  const Client deaf(path);
  deaf.say("GET /long HTTP/1.1\r\n\r\n");
  const Client other(path);
  other.say("GET /short HTTP/1.1\r\n\r\n");
  EXPECT_THAT(other.hear(), HasSubstr("here"));
}

// Idle connections, a request in its middle, an answer in its middle, and one that waits for a thread.
TEST_F(BoundedServerTest, TheEndWaitsForNobody) {
  serve({.request = kNever, .answer = kNever, .farewell = milliseconds(50), .threads = 3});
  const Client idle(path);
  const Client halfway(path);
  const Client deaf(path);
  const Client waiting(path);
  halfway.say("POST /count HTTP/1.1\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\nab");
  deaf.say("GET /long HTTP/1.1\r\n\r\n");
  EXPECT_EQ(halfway.hear_one(), 'H');
  EXPECT_EQ(deaf.hear_one(), 'H');  // each has its thread
  const auto began = Clock::now();
  server->end();
  thread.join();
  EXPECT_LT(Clock::now() - began, milliseconds(5000));
  EXPECT_EQ(idle.hear(), "");
}

TEST_F(BoundedServerTest, EndlessHeadsAndBodiesEnd) {
  serve({.request = kNever, .head_bytes = 10'000, .body_bytes = 100'000});
  for (const char* head : {"GET /short HTTP/1.1\r\nX: ", "POST /count HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                           "PRI /count HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    SCOPED_TRACE(head);
    const Client client(path);
    client.say(head);
    for (int i = 0; i < 40; ++i) client.say("1000\r\n" + std::string(4096, 'x') + "\r\n");
    EXPECT_THAT(client.hear(), StartsWith("HTTP/1.1 400 "));
  }
}

// Closed on it, the client would see a broken pipe before it sees why.
TEST_F(BoundedServerTest, RefusedBodiesHearWhy) {
  serve({});
  server->set_payload_max_length(1000);
  const Client client(path);
  EXPECT_TRUE(client.say("POST /count HTTP/1.1\r\nContent-Length: 4000000\r\n\r\n" + std::string(4'000'000, 'x')));
  EXPECT_THAT(client.hear(), StartsWith("HTTP/1.1 413 "));
}

TEST_F(BoundedServerTest, ExceptionsEndTheirConnection) {
  serve({});
  const Client client(path);
  client.say("GET /throw HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.hear(), "");
  const Client next(path);
  next.say("GET /short HTTP/1.1\r\n\r\n");
  EXPECT_THAT(next.hear(), HasSubstr("here"));
}

}  // namespace
}  // namespace heddle::control
