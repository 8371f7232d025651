// The responder as a state machine: packet numbers in, acknowledgements and completions out.
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "lab/host/queue_pair.h"
#include "net/random.h"

namespace heddle::lab {
namespace {

constexpr OutOfOrder kModes[] = {OutOfOrder::kGoBackN, OutOfOrder::kSelectiveRepeat, OutOfOrder::kInOrderPlacement,
                                 OutOfOrder::kAnyOrderPlacement};

struct Row {
  std::string_view description;
  OutOfOrder mode;
  uint32_t ack_every;
  // Packets as they arrive: PSN, then L = last of its message (whose number is the PSN), r = a repeated copy.
  std::string_view arrivals;
  // What comes of each: "." no reply, A or N and the PSN; then x = refused, d = duplicate, ~k = late by k, ! and the
  // message for each that is complete.
  std::string_view outcome;
};

std::string feed(ReceiveQueue& queue, const std::string& token, const HostSettings& settings) {
  size_t digits = 0;
  const uint64_t psn = std::stoull(token, &digits);
  const bool last = token.find('L', digits) != std::string::npos;
  const bool repeated = token.find('r', digits) != std::string::npos;
  std::string completed;
  const auto done = [&](MessageId message) { completed += "!" + std::to_string(message); };
  const Receipt receipt = queue.receive(psn, last, last ? static_cast<MessageId>(psn) : 0, repeated, settings, done);
  std::string text = ".";
  if (receipt.reply == Receipt::Reply::kAck) text = "A" + std::to_string(receipt.ack_psn);
  if (receipt.reply == Receipt::Reply::kNak) text = "N" + std::to_string(receipt.ack_psn);
  if (!receipt.accepted) text += "x";
  if (receipt.duplicate) text += "d";
  if (receipt.late_by != 0) text += "~" + std::to_string(receipt.late_by);
  return text + completed;
}

std::string outcome_of(const Row& row) {
  HostSettings settings;
  settings.mtu = 1000;
  settings.reorder_bytes = 3000;
  settings.out_of_order = row.mode;
  settings.ack_every = row.ack_every;
  ReceiveQueue queue;
  std::istringstream arrivals{std::string(row.arrivals)};
  std::string outcome;
  for (std::string token; arrivals >> token;) outcome += (outcome.empty() ? "" : " ") + feed(queue, token, settings);
  return outcome;
}

class ReceiveQueueRows : public testing::TestWithParam<Row> {};

TEST_P(ReceiveQueueRows, Answers) { EXPECT_EQ(outcome_of(GetParam()), GetParam().outcome) << GetParam().arrivals; }

std::string name_of_row(const testing::TestParamInfo<Row>& row) {
  std::string name;
  for (const char c : row.param.description) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) name += c;
    if (!plain && !name.empty() && name.back() != '_') name += '_';
  }
  return name;
}

constexpr OutOfOrder kGbn = OutOfOrder::kGoBackN;
constexpr OutOfOrder kSr = OutOfOrder::kSelectiveRepeat;
constexpr OutOfOrder kInOrder = OutOfOrder::kInOrderPlacement;
constexpr OutOfOrder kAnyOrder = OutOfOrder::kAnyOrderPlacement;

INSTANTIATE_TEST_SUITE_P(
    InOrder, ReceiveQueueRows,
    testing::Values(Row{"an ACK for each packet", kGbn, 1, "0 1 2L", "A0 A1 A2!2"},
                    Row{"an ACK for every fourth packet, every time", kGbn, 4, "0 1 2 3 4 5 6 7 8 9 10 11",
                        ". . . A3 . . . A7 . . . A11"},
                    Row{"the last packet of a message is acknowledged at once", kGbn, 4, "0 1 2L", ". . A2!2"},
                    Row{"the count begins anew after a message", kGbn, 4, "0 1L 2 3 4 5 6 7L",
                        ". A1!1 . . . A5 . A7!7"},
                    Row{"several messages of one packet", kAnyOrder, 16, "0L 1L 2L", "A0!0 A1!1 A2!2"},
                    Row{"a duplicate is acknowledged again, whatever the coalescing", kSr, 8, "0 1 0r 2", ". . A1d ."},
                    Row{"a duplicate of a last packet completes nothing twice", kGbn, 1, "0L 0Lr 0Lr", "A0!0 A0d A0d"}),
    name_of_row);

INSTANTIATE_TEST_SUITE_P(
    GoBackN, ReceiveQueueRows,
    testing::Values(Row{"one NAK for a gap, what is beyond is dropped", kGbn, 1, "0 2 3 4", "A0 N1x .x .x"},
                    Row{"after the repeat all goes on", kGbn, 1, "0 2 3 1r 2r 3r 4", "A0 N1x .x A1 A2 A3 A4"},
                    Row{"a second gap has a NAK of its own", kGbn, 1, "1 0r 1r 3 2r 3r", "N0x A0 A1 N2x A2 A3"},
                    Row{"a duplicate does not open the gap for another NAK", kGbn, 1, "0 2 0r 3", "A0 N1x A0d .x"},
                    Row{"a lost first packet is asked for", kGbn, 1, "1 2", "N0x .x"},
                    Row{"a duplicate ahead of the first packet has nothing to acknowledge", kGbn, 1, "1 0 0r",
                        "N0x A0~1 A0d"},
                    Row{"a refused last packet completes nothing", kGbn, 1, "0 2L 1r 2Lr", "A0 N1x A1 A2!2"},
                    Row{"coalescing goes on over a gap", kGbn, 3, "0 1 3 2r 3r 4r 5r", ". . N2x A2 . . A5"}),
    name_of_row);

INSTANTIATE_TEST_SUITE_P(
    SelectiveRepeat, ReceiveQueueRows,
    testing::Values(Row{"a NAK for each packet beyond the gap, all kept", kSr, 1, "0 2 3 1r", "A0 N1 N1 A3"},
                    Row{"two gaps close one after another", kSr, 1, "0 2 4 1r 3r", "A0 N1 N1 A2 A4"},
                    Row{"a copy of a kept packet is a duplicate", kSr, 1, "0 2 2r 1r", "A0 N1 A0d A2"},
                    Row{"a kept last packet completes when the gap closes", kSr, 1, "0 2L 1r", "A0 N1 A2!2"},
                    Row{"messages complete in order of their packets", kSr, 16, "2L 1L 0L", "N0 N0~1 A2~2!0!1!2"},
                    Row{"the gap before the first packet", kSr, 1, "1 0r", "N0 A1"}),
    name_of_row);

INSTANTIATE_TEST_SUITE_P(
    InOrderPlacement, ReceiveQueueRows,
    testing::Values(Row{"kept without a word until the gap closes", kInOrder, 1, "0 2 3 1", "A0 . . A3~2"},
                    Row{"beyond the buffer of three packets dropped", kInOrder, 1, "1 3 4 2 0", ". . .x .~2 A3~4"},
                    Row{"what was dropped is taken when it comes again", kInOrder, 1, "4 0 1 2 3 4r",
                        ".x A0~4 A1~3 A2~2 A3~1 A4"},
                    Row{"never a NAK", kInOrder, 1, "5 6 7", ".x .x .x"}),
    name_of_row);

INSTANTIATE_TEST_SUITE_P(
    AnyOrderPlacement, ReceiveQueueRows,
    testing::Values(
        Row{"kept however far beyond", kAnyOrder, 1, "1000 0 1", ". A0~1000 A1~999"},
        Row{"an ACK counts what the gap held back", kAnyOrder, 4, "0 2 3 4 1 5 6 7 8", ". . . . A4~3 . . . A8"},
        Row{"a message within a gap completes with it", kAnyOrder, 1, "0 2L 3 1 4L", "A0 . . A3~2!2 A4!4"},
        Row{"first packet of a message after a kept last one", kAnyOrder, 1, "1L 2 0 3L", ". . A2~2!1 A3!3"},
        Row{"a repeated copy is not counted as out of order", kAnyOrder, 1, "1 2 0r", ". . A2"}),
    name_of_row);

// Any order of arrival, with copies: every message completes exactly once, in order, and nothing is acknowledged that
// has not come.
TEST(ReceiveQueue, CompletesEveryMessageOnceWhateverTheOrder) {
  Random random(5);
  for (const OutOfOrder mode : kModes) {
    for (int round = 0; round < 200; ++round) {
      HostSettings settings;
      settings.mtu = 1000;
      settings.reorder_bytes = 7000;
      settings.out_of_order = mode;
      settings.ack_every = 1 + random.below(5);
      constexpr uint32_t kPackets = 60;
      std::vector<bool> last(kPackets);
      std::vector<MessageId> messages;
      for (uint32_t psn = 0; psn < kPackets; ++psn) {
        last[psn] = psn + 1 == kPackets || random.below(4) == 0;
        if (last[psn]) messages.push_back(psn);
      }
      ReceiveQueue queue;
      std::vector<bool> came(kPackets);
      std::vector<MessageId> completed;
      uint64_t arrivals = 0;
      while (completed.size() < messages.size()) {
        ASSERT_LT(++arrivals, 100'000U);
        const auto near = static_cast<uint32_t>(std::min<uint64_t>(kPackets - 1, queue.expected() + 8));
        const uint32_t psn = random.below(near + 1);
        const bool complete_before = came[psn];
        const Receipt receipt = queue.receive(psn, last[psn], psn, false, settings,
                                              [&](MessageId message) { completed.push_back(message); });
        EXPECT_EQ(receipt.duplicate, complete_before);
        came[psn] = came[psn] || (receipt.accepted && !receipt.duplicate);
        uint32_t expected = 0;
        while (expected < kPackets && came[expected]) ++expected;
        ASSERT_EQ(queue.expected(), expected);
        if (receipt.reply == Receipt::Reply::kAck) {
          EXPECT_EQ(receipt.ack_psn + 1, expected);
        }
        if (receipt.reply == Receipt::Reply::kNak) {
          EXPECT_EQ(receipt.ack_psn, expected);
        }
      }
      EXPECT_EQ(completed, messages);
      EXPECT_EQ(queue.completed_parts(), messages.size());
    }
  }
}

}  // namespace
}  // namespace heddle::lab
