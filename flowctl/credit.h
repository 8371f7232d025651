// Credit flow control of one virtual lane of a link (IBTA volume 1, 7.9): the transmitter sends only what the receiver
// has room for, so that nothing is ever dropped for lack of buffer.
//
// Both ends count blocks of 64 bytes in counters that wrap. The receiver says up to which count the transmitter may
// send (FCCL); the transmitter says how far it has counted (FCTBS), so that packets lost on the way do not cost credit
// for ever. How wide counters are and how long a block is are parameters: 12 bits allow 2048 blocks, 128 KiB, on their
// way at a time; links with more negotiate more (UEC credits count 20 bits).
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::flowctl {

struct CreditFormat {
  unsigned counter_bits = 12;  // 4–28
  uint32_t block = 64;         // bytes, 16–65536

  uint32_t mask() const { return (1U << counter_bits) - 1; }
  // The most blocks that can be on their way: half the counters' range.
  uint32_t window() const { return 1U << (counter_bits - 1); }
  // What a packet takes, from its LRH to its VCRC: whole blocks. Divides.
  uint32_t blocks_of(uint64_t bytes) const { return static_cast<uint32_t>((bytes + block - 1) / block); }
};

// The transmitter's half.
class CreditSender {
 public:
  void configure(const CreditFormat& format) {
    mask_ = format.mask();
    window_ = format.window();
  }
  // Whether a packet of that many blocks may be sent, the whole of it (IBTA 7.9.4.2): (FCCL − FCTBS − blocks) modulo
  // the counters' range is not beyond half of it.
  bool may_send(uint32_t blocks) const { return ((fccl_ - fctbs_ - blocks) & mask_) <= window_; }
  // It was.
  void sent(uint32_t blocks) { fctbs_ = (fctbs_ + blocks) & mask_; }
  // The receiver allows that much.
  void allow(uint32_t fccl) { fccl_ = fccl & mask_; }

  // Blocks that may be sent now.
  uint32_t available() const {
    const uint32_t left = (fccl_ - fctbs_) & mask_;
    return left <= window_ ? left : 0;
  }
  uint32_t fctbs() const { return fctbs_; }
  // The link has come up anew: no credit until the receiver gives some.
  void reset() { fctbs_ = fccl_ = 0; }

 private:
  uint32_t mask_ = 0;
  uint32_t window_ = 0;
  uint32_t fctbs_ = 0;  // blocks sent
  uint32_t fccl_ = 0;   // up to which they may be
};

// The receiver's half, with the buffer behind it.
class CreditReceiver {
 public:
  // `capacity` in blocks.
  void configure(const CreditFormat& format, uint32_t capacity) {
    mask_ = format.mask();
    window_ = format.window();
    capacity_ = capacity;
  }
  // A packet has come. False if the transmitter had no credit for it or there is no room: either breaks the promise.
  bool receive(uint32_t blocks) {
    const bool allowed = ((told_ - abr_ - blocks) & mask_) <= window_;
    abr_ = (abr_ + blocks) & mask_;
    held_ += blocks;
    if (held_ > peak_) peak_ = held_;
    return allowed && held_ <= capacity_;
  }
  // It has left the buffer.
  void release(uint32_t blocks) { held_ -= blocks; }
  // What the transmitter says it has sent: what is missing was lost.
  void resync(uint32_t fctbs) { abr_ = fctbs & mask_; }

  // FCCL as it is now: ABR and the free blocks, at most half the counters' range of them.
  uint32_t limit() const {
    const uint32_t free = held_ < capacity_ ? capacity_ - held_ : 0;
    return (abr_ + (free < window_ ? free : window_)) & mask_;
  }
  // Takes it as told to the transmitter.
  uint32_t tell() { return told_ = limit(); }
  uint32_t told() const { return told_; }
  // Blocks by which it has grown since it was last told.
  uint32_t untold() const { return (limit() - told_) & mask_; }
  // Blocks that the transmitter may still send as far as the receiver knows; those on their way count.
  uint32_t outstanding() const { return (told_ - abr_) & mask_; }

  uint32_t held() const { return held_; }
  uint32_t peak() const { return peak_; }
  uint32_t capacity() const { return capacity_; }
  // The link has come up anew; what is in the buffer stays there.
  void reset() { abr_ = told_ = 0; }

 private:
  uint32_t mask_ = 0;
  uint32_t window_ = 0;
  uint32_t capacity_ = 0;
  uint32_t abr_ = 0;   // adjusted blocks received
  uint32_t told_ = 0;  // FCCL as last sent
  uint32_t held_ = 0;
  uint32_t peak_ = 0;
};

// What a flow-control packet says.
struct CreditMessage {
  uint8_t vl = 0;
  uint32_t fctbs = 0;
  uint32_t fccl = 0;
};

// Bytes of a flow-control packet: IBTA's up to 12 bits, and 10 beyond. Shorter than any other packet.
uint32_t credit_packet_bytes(const CreditFormat& format);
inline constexpr uint32_t kLongestCreditPacket = 10;
// Writes it, LPCRC included.
void write_credit_packet(uint8_t* packet, const CreditFormat& format, const CreditMessage& message);
// False if it is none: wrong length, operand or LPCRC.
bool parse_credit_packet(const uint8_t* packet, size_t bytes, const CreditFormat& format, CreditMessage& message);

}  // namespace heddle::flowctl
