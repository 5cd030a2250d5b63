// SPDX-License-Identifier: Apache-2.0
// Reads bits from the entropy-coded bytes of a JPEG scan, up to the next marker or the end of the
// data; after that, returns zeros and records that it did. Borrows the bytes; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace {

class JpegBitReader {
 public:
  explicit JpegBitReader(std::span<const uint8_t> bytes)
      : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()) {}

  // Afterwards at least 48 bits are available.
  void refill() {
    if (count_ >= 48) return;
    if (end_ - at_ >= 8) [[likely]] {
      uint64_t next = 0;
      for (int i = 0; i < 8; ++i) next = next << 8 | at_[i];
      constexpr uint64_t kLow = 0x0101010101010101u, kHigh = 0x8080808080808080u;
      if (!(next & kHigh & ~(next + kLow))) [[likely]] {
        bits_ |= next >> count_;
        const int bytes = (63 - count_) >> 3;
        at_ += bytes;
        count_ += 8 * bytes;
        return;
      }
    }
    refill_bytewise();
  }
  uint64_t look(int count) const { return bits_ >> (64 - count); }  // REQUIRES: count is 1..48
  void skip(int count) {
    bits_ <<= count;
    count_ -= count;
  }
  // REQUIRES: count is 1..16.
  uint32_t take(int count) {
    refill();
    const uint32_t bits = uint32_t(look(count));
    skip(count);
    return bits;
  }
  // True if more bits were used than exist.
  bool overrun() const { return invented_ > count_; }

  // The padding bits of the last byte. Only valid if a marker or nothing follows.
  struct Padding {
    bool ends_here = false;
    int count = 0;  // 0..7
    uint8_t bits = 0;
  };
  Padding padding() {
    refill_bytewise();
    const int left = count_ - invented_;
    Padding padding{.ends_here = left >= 0 && left < 8 && at_marker()};
    if (!padding.ends_here) return padding;
    padding.count = left;
    if (left > 0) padding.bits = uint8_t(look(left));
    return padding;
  }
  // Skips the padding and a two-byte marker. False if a different marker follows.
  bool take_marker(uint8_t code) {
    if (end_ - at_ < 2 || at_[0] != 0xFF || at_[1] != code) return false;
    at_ += 2;
    bits_ = 0;
    count_ = invented_ = 0;
    return true;
  }
  size_t offset() const { return size_t(at_ - begin_); }

 private:
  bool at_marker() const {
    return at_ == end_ || (*at_ == 0xFF && (at_ + 1 == end_ || at_[1] != 0));
  }
  void refill_bytewise() {
    while (count_ <= 56) {
      if (at_marker()) {
        const int missing = 64 - count_;
        count_ += missing;
        invented_ += missing;
        return;
      }
      const uint8_t byte = *at_;
      at_ += byte == 0xFF ? 2 : 1;
      bits_ |= uint64_t{byte} << (56 - count_);
      count_ += 8;
    }
  }

  const uint8_t *begin_, *at_, *end_;
  uint64_t bits_ = 0;  // from the most significant bit; zeros after the valid ones
  int count_ = 0;      // valid bits
  int invented_ = 0;   // how many of them, the last ones, are zeros appended past the end
};

}  // namespace headrace
