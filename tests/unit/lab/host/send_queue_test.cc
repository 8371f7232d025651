// The requester as a state machine: acknowledgements and time-outs in, packet numbers out.
#include <deque>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "lab/host/queue_pair.h"
#include "lab/host/roce.h"
#include "net/random.h"

namespace heddle::lab {
namespace {

constexpr uint32_t kMtu = 1024;

struct Row {
  std::string_view description;
  uint64_t window;  // packets; 0 = none
  // post:N  a message of N packets (numbered 0, 1, …)     send  all that may be sent      sendN  N packets at most
  // ack:P   nak:P (go back N)   gap:E,G (selective repeat: E expected, G came)   timeout   timeout-sr
  std::string_view script;
  // PSNs in the order they are sent, r = a repetition; !M when message M is acknowledged.
  std::string_view outcome;
};

class Player {
 public:
  explicit Player(uint64_t window) : window_(window) {}

  std::string play(std::string_view script) {
    std::istringstream steps{std::string(script)};
    for (std::string step; steps >> step;) take(step);
    return outcome_;
  }

 private:
  void note(const std::string& text) { outcome_ += (outcome_.empty() ? "" : " ") + text; }

  void take(const std::string& step) {
    const size_t colon = step.find(':');
    const std::string what = step.substr(0, colon);
    const uint64_t number = colon == std::string::npos ? 0 : std::stoull(step.substr(colon + 1));
    const auto done = [&](MessageId message) { note("!" + std::to_string(message)); };
    if (what == "post") {
      queue_.post(messages_++, number * kMtu, kMtu);
    } else if (what == "ack") {
      queue_.acknowledge(number, done);
    } else if (what == "nak") {
      if (number != 0) queue_.acknowledge(number - 1, done);
      queue_.go_back(number);
    } else if (what == "gap") {
      const uint64_t got = std::stoull(step.substr(step.find(',') + 1));
      if (number != 0) queue_.acknowledge(number - 1, done);
      queue_.repeat_gap(number, got);
    } else if (what == "timeout" || what == "timeout-sr") {
      queue_.time_out(what == "timeout-sr");
    } else {
      ASSERT_EQ(what.substr(0, 4), "send") << step;
      const uint64_t most = what.size() == 4 ? 1000 : std::stoull(what.substr(4));
      for (uint64_t i = 0; i < most && queue_.has_packet(window_); ++i) {
        const SendPacket packet = queue_.take(kMtu);
        note(std::to_string(packet.psn) + (packet.repeated ? "r" : ""));
      }
    }
  }

  SendQueue queue_;
  uint64_t window_;
  MessageId messages_ = 0;
  std::string outcome_;
};

class SendQueueRows : public testing::TestWithParam<Row> {};

TEST_P(SendQueueRows, Sends) { EXPECT_EQ(Player(GetParam().window).play(GetParam().script), GetParam().outcome); }

std::string name_of_row(const testing::TestParamInfo<Row>& row) {
  std::string name;
  for (const char c : row.param.description) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) name += c;
    if (!plain && !name.empty() && name.back() != '_') name += '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Acknowledged, SendQueueRows,
    testing::Values(Row{"a message is done with its last ACK", 0, "post:3 send ack:0 ack:1 ack:2", "0 1 2 !0"},
                    Row{"one ACK may end several messages", 0, "post:2 post:1 post:2 send ack:4", "0 1 2 3 4 !0 !1 !2"},
                    Row{"an old ACK says nothing", 0, "post:3 send ack:1 ack:0 ack:1 ack:2", "0 1 2 !0"},
                    Row{"an ACK of what was never sent is ignored", 0, "post:4 send2 ack:3 send ack:3", "0 1 2 3 !0"},
                    Row{"messages posted later continue the numbers", 0, "post:2 send ack:1 post:2 send ack:3",
                        "0 1 !0 2 3 !1"},
                    Row{"no window: all at once", 0, "post:5 send", "0 1 2 3 4"},
                    Row{"a window of two", 2, "post:5 send ack:0 send ack:2 send ack:4", "0 1 2 3 4 !0"}),
    name_of_row);

INSTANTIATE_TEST_SUITE_P(
    GoBackN, SendQueueRows,
    testing::Values(
        Row{"everything from the gap again", 0, "post:5 send nak:2 send ack:4", "0 1 2 3 4 2r 3r 4r !0"},
        Row{"new packets follow the repeated ones", 0, "post:5 send3 nak:1 send", "0 1 2 1r 2r 3 4"},
        Row{"a NAK acknowledges what lies before it", 0, "post:2 post:3 send nak:2 send ack:4",
            "0 1 2 3 4 !0 2r 3r 4r !1"},
        Row{"a NAK of the first packet acknowledges nothing", 0, "post:3 send nak:0 send", "0 1 2 0r 1r 2r"},
        Row{"a NAK for something acknowledged is stale", 0, "post:4 send ack:2 nak:1 send", "0 1 2 3"},
        Row{"a NAK for what was never sent is ignored", 0, "post:4 send2 nak:3 send", "0 1 2 3"},
        Row{"the same NAK again goes back again", 0, "post:4 send nak:1 send2 nak:1 send", "0 1 2 3 1r 2r 1r 2r 3r"},
        Row{"an ACK overtakes the repetition", 0, "post:6 send nak:1 send1 ack:3 send", "0 1 2 3 4 5 1r 4r 5r"},
        Row{"an ACK makes the repetition needless", 0, "post:3 send timeout ack:2 send", "0 1 2 !0"},
        Row{"a time-out repeats what is unacknowledged", 0, "post:4 send ack:1 timeout send", "0 1 2 3 2r 3r"},
        Row{"a window is counted from the oldest unacknowledged", 2, "post:5 send timeout send ack:0 send",
            "0 1 0r 1r 2"}),
    name_of_row);

INSTANTIATE_TEST_SUITE_P(
    SelectiveRepeat, SendQueueRows,
    testing::Values(Row{"only what is missing", 0, "post:6 send gap:2,4 send ack:5", "0 1 2 3 4 5 2r 3r !0"},
                    Row{"every missing packet once in a recovery", 0, "post:6 send gap:2,3 send gap:2,4 gap:2,5 send",
                        "0 1 2 3 4 5 2r"},
                    Row{"a second gap in a recovery is filled as well", 0, "post:6 send gap:1,2 gap:1,4 gap:1,5 send",
                        "0 1 2 3 4 5 1r 3r"},
                    Row{"repetitions go before new packets", 0, "post:6 send4 gap:1,3 send", "0 1 2 3 1r 2r 4 5"},
                    Row{"a new recovery after the old one", 0, "post:8 send4 gap:1,3 send ack:3 gap:5,7 send ack:7",
                        "0 1 2 3 1r 2r 4 5 6 7 5r 6r !0"},
                    Row{"an ACK makes the repetition needless", 0, "post:4 send gap:1,3 ack:3 send", "0 1 2 3 !0"},
                    Row{"an ACK overtakes part of the repetition", 0, "post:6 send gap:1,5 send1 ack:3 send",
                        "0 1 2 3 4 5 1r 4r"},
                    Row{"a time-out repeats all but what is known to be there", 0,
                        "post:5 send gap:0,2 send timeout-sr send", "0 1 2 3 4 0r 1r 0r 1r 3r 4r"},
                    Row{"a gap behind the acknowledged is stale", 0, "post:4 send ack:2 gap:0,1 send", "0 1 2 3"},
                    Row{"a gap beyond what was sent is ignored", 0, "post:4 send2 gap:1,3 send", "0 1 2 3"},
                    Row{"repetitions need no window", 2, "post:4 send gap:0,1 send ack:1 send", "0 1 0r 2 3"}),
    name_of_row);

struct Cut {
  uint64_t bytes;
  std::vector<uint32_t> payloads;
  std::vector<net::Opcode> opcodes;
};

// All packets but the last are full, and each says where in its message it stands.
TEST(SendQueue, CutsMessagesIntoPackets) {
  using enum net::Opcode;
  const std::vector<Cut> cuts{
      {1, {1}, {kRcSendOnly}},
      {1024, {1024}, {kRcSendOnly}},
      {1025, {1024, 1}, {kRcSendFirst, kRcSendLast}},
      {3072, {1024, 1024, 1024}, {kRcSendFirst, kRcSendMiddle, kRcSendLast}},
      {3100, {1024, 1024, 1024, 28}, {kRcSendFirst, kRcSendMiddle, kRcSendMiddle, kRcSendLast}}};
  SendQueue queue;
  uint64_t psn = 0;
  for (size_t m = 0; m < cuts.size(); ++m) queue.post(static_cast<MessageId>(m), cuts[m].bytes, kMtu);
  for (size_t m = 0; m < cuts.size(); ++m) {
    for (size_t i = 0; i < cuts[m].payloads.size(); ++i, ++psn) {
      ASSERT_TRUE(queue.has_packet(0));
      const SendPacket packet = queue.take(kMtu);
      EXPECT_EQ(packet.psn, psn);
      EXPECT_EQ(packet.message, m);
      EXPECT_EQ(packet.payload, cuts[m].payloads[i]) << cuts[m].bytes << " bytes, packet " << i;
      EXPECT_EQ(packet.opcode, cuts[m].opcodes[i]) << cuts[m].bytes << " bytes, packet " << i;
      EXPECT_EQ(packet.last, i + 1 == cuts[m].payloads.size());
    }
  }
  EXPECT_FALSE(queue.has_packet(0));
}

// Both ends of a connection over two pipes that lose, and one that reorders.
class Connection {
 public:
  Connection(OutOfOrder mode, uint32_t ack_every, uint64_t window, uint64_t seed) : window_(window), random_(seed) {
    settings_.mtu = kMtu;
    settings_.out_of_order = mode;
    settings_.ack_every = ack_every;
  }

  void post(uint64_t packets) { sender_.post(messages_++, packets * kMtu, kMtu); }
  // One packet in 1 / `loss` is lost each way; the forward pipe lets packets overtake up to `reorder` others.
  void run(double loss, uint32_t reorder) {
    uint64_t idle = 0;
    while (sent_ < messages_) {
      ASSERT_LT(++steps_, uint64_t{1} << 27U) << "no progress";
      const bool room = data_.size() <= reorder + 4;
      if (room && sender_.has_packet(window_)) {
        const SendPacket packet = sender_.take(kMtu);
        if (loss == 0 || random_.uniform() >= loss) data_.push_back(packet);
        idle = 0;
      }
      if (!data_.empty() && (data_.size() > reorder || !sender_.has_packet(window_) || !room)) deliver(loss, reorder);
      if (acks_.size() > 8 || data_.empty()) acknowledge();
      if (data_.empty() && acks_.empty() && !sender_.has_packet(window_) && ++idle > 2) {
        ASSERT_TRUE(sender_.outstanding());
        sender_.time_out(settings_.out_of_order == OutOfOrder::kSelectiveRepeat);
        idle = 0;
      }
    }
  }

  uint64_t received() const { return received_; }
  uint64_t sent() const { return sent_; }
  uint64_t psn() const { return sender_.una(); }

 private:
  struct Reply {
    bool nak;
    uint32_t psn;  // 24 bits, as on the wire
    uint32_t got;
  };

  void deliver(double loss, uint32_t reorder) {
    const size_t at =
        reorder == 0 ? 0 : random_.below(static_cast<uint32_t>(std::min<size_t>(data_.size(), reorder + 1)));
    const SendPacket packet = data_[at];
    data_.erase(data_.begin() + static_cast<std::ptrdiff_t>(at));
    const auto wire = static_cast<uint32_t>(packet.psn & 0xffffffU);
    const uint64_t psn = widen_psn(wire, receiver_.expected());
    ASSERT_EQ(psn, packet.psn);
    const auto done = [&](MessageId message) {
      ASSERT_EQ(message, received_);
      ++received_;
    };
    const Receipt receipt = receiver_.receive(psn, packet.last, packet.message, packet.repeated, settings_, done);
    if (receipt.reply == Receipt::Reply::kNone || (loss != 0 && random_.uniform() < loss)) return;
    acks_.push_back({receipt.reply == Receipt::Reply::kNak, static_cast<uint32_t>(receipt.ack_psn & 0xffffffU), wire});
  }

  void acknowledge() {
    for (const Reply& reply : acks_) {
      const uint64_t psn = widen_psn(reply.psn, sender_.una());
      const auto done = [&](MessageId message) {
        ASSERT_EQ(message, sent_);
        ++sent_;
        ASSERT_LE(sent_, received_) << "acknowledged before it was received";
      };
      if (!reply.nak) {
        sender_.acknowledge(psn, done);
        continue;
      }
      if (psn > 0) sender_.acknowledge(psn - 1, done);
      if (settings_.out_of_order == OutOfOrder::kSelectiveRepeat) {
        sender_.repeat_gap(psn, widen_psn(reply.got, sender_.una()));
      } else {
        sender_.go_back(psn);
      }
    }
    acks_.clear();
  }

  HostSettings settings_;
  uint64_t window_;
  Random random_;
  SendQueue sender_;
  ReceiveQueue receiver_;
  std::deque<SendPacket> data_;
  std::vector<Reply> acks_;
  MessageId messages_ = 0;
  uint64_t received_ = 0;
  uint64_t sent_ = 0;
  uint64_t steps_ = 0;
};

constexpr OutOfOrder kModes[] = {OutOfOrder::kGoBackN, OutOfOrder::kSelectiveRepeat, OutOfOrder::kInOrderPlacement,
                                 OutOfOrder::kAnyOrderPlacement};

TEST(QueuePair, EveryMessageArrivesOnceAndInOrderThroughLossAndReordering) {
  for (const OutOfOrder mode : kModes) {
    for (const double loss : {0.0, 0.01, 0.2}) {
      for (const uint32_t reorder : {0U, 7U}) {
        for (uint64_t seed = 0; seed < 8; ++seed) {
          SCOPED_TRACE(testing::Message() << "mode " << static_cast<int>(mode) << ", loss " << loss << ", reorder "
                                          << reorder << ", seed " << seed);
          Random random(seed);
          Connection connection(mode, 1 + random.below(4), seed % 2 == 0 ? 0 : 16, seed);
          uint64_t packets = 0;
          uint64_t messages = 0;
          while (packets < 500) {
            const uint64_t n = 1 + random.below(40);
            connection.post(n);
            packets += n;
            ++messages;
          }
          connection.run(loss, reorder);
          if (HasFatalFailure()) return;
          EXPECT_EQ(connection.received(), messages);
          EXPECT_EQ(connection.sent(), messages);
          EXPECT_EQ(connection.psn(), packets);
        }
      }
    }
  }
}

// PSNs have 24 bits on the wire (IBTA 9.7.2): one queue pair sends more packets than that, and loses some on both sides
// of the wrap.
TEST(QueuePair, PacketNumbersWrap) {
  constexpr uint64_t kWrap = uint64_t{1} << 24U;
  Connection connection(OutOfOrder::kSelectiveRepeat, 16, 0, 3);
  connection.post(kWrap - 500);
  connection.run(0, 0);
  if (HasFatalFailure()) return;
  ASSERT_EQ(connection.psn(), kWrap - 500);
  for (int i = 0; i < 50; ++i) connection.post(20);
  connection.run(0.05, 4);
  if (HasFatalFailure()) return;
  EXPECT_EQ(connection.psn(), kWrap + 500);
  EXPECT_EQ(connection.received(), 51U);
  EXPECT_EQ(connection.sent(), 51U);
}

struct Widening {
  std::string_view description;
  uint32_t wire;
  uint64_t near;
  uint64_t expected;
};

TEST(WidenPsn, TakesTheNearestNumber) {
  constexpr uint64_t kWrap = uint64_t{1} << 24U;
  for (const Widening& row : {Widening{"the same", 5, 5, 5}, Widening{"ahead", 9, 5, 9}, Widening{"behind", 2, 5, 2},
                              Widening{"over the wrap", 3, kWrap - 2, kWrap + 3},
                              Widening{"back over the wrap", 0xfffffe, kWrap + 1, kWrap - 2},
                              Widening{"in the third round", 7, 2 * kWrap + 100, 2 * kWrap + 7},
                              Widening{"the furthest ahead", 0x7fffff, 0, 0x7fffff},
                              Widening{"the furthest behind", 0x800000, kWrap, kWrap - 0x800000}}) {
    EXPECT_EQ(widen_psn(row.wire, row.near), row.expected) << row.description;
  }
}

}  // namespace
}  // namespace heddle::lab
