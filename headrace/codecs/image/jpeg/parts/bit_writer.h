// SPDX-License-Identifier: Apache-2.0
// Writes bits as the entropy-coded bytes of a JPEG scan (F.1.2.3): most significant bit first, with
// a zero byte after each 0xFF. Appends to a vector that it borrows; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace {

class JpegBitWriter {
 public:
  explicit JpegBitWriter(std::vector<uint8_t>& out) : out_(out), at_(out.size()) {}
  // The bytes are complete only after finish().
  ~JpegBitWriter() { out_.resize(at_); }
  JpegBitWriter(const JpegBitWriter&) = delete;
  JpegBitWriter& operator=(const JpegBitWriter&) = delete;

  // REQUIRES: count is 0..48, bits < 2^count.
  void put(uint64_t bits, int count) {
    free_ -= count;
    if (free_ >= 0) {
      held_ = held_ << count | bits;
      return;
    }
    const int over = -free_;  // 1..48: bits that no longer fit
    emit(held_ << (count - over) | bits >> over);
    free_ += 64;
    held_ = bits & ((uint64_t{1} << over) - 1);
  }
  // How many padding bits finish() needs, 0..7.
  int missing() const { return free_ & 7; }
  // Pads the last byte with the low missing() bits of `padding` and writes everything out.
  void finish(uint8_t padding) {
    const int count = missing();
    put(padding & ((1u << count) - 1), count);
    reserve();
    for (int left = 64 - free_; left > 0; left -= 8) put_byte(uint8_t(held_ >> (left - 8)));
    free_ = 64;
    held_ = 0;
  }
  // A marker. REQUIRES: finished, or nothing written yet.
  void marker(uint8_t code) {
    reserve();
    out_[at_++] = 0xFF;
    out_[at_++] = code;
  }

 private:
  static constexpr size_t kRoom = 16;  // eight bytes, all of them stuffed

  void reserve() {
    if (out_.size() - at_ < kRoom) out_.resize(out_.size() * 2 + 4096);
  }
  void put_byte(uint8_t byte) {
    out_[at_++] = byte;
    if (byte == 0xFF) out_[at_++] = 0;
  }
  void emit(uint64_t eight) {
    reserve();
    // A byte of all ones carries into its top bit from the byte below: finds all of them and,
    // rarely, a neighbor.
    constexpr uint64_t kLow = 0x0101010101010101u, kHigh = 0x8080808080808080u;
    if (eight & kHigh & ~(eight + kLow)) {
      for (int shift = 56; shift >= 0; shift -= 8) put_byte(uint8_t(eight >> shift));
      return;
    }
    uint8_t* const to = out_.data() + at_;
    for (int i = 0; i < 8; ++i) to[i] = uint8_t(eight >> (56 - 8 * i));
    at_ += 8;
  }

  std::vector<uint8_t>& out_;
  size_t at_;          // number of bytes written; the vector is larger
  uint64_t held_ = 0;  // the low 64 - free_ bits
  int free_ = 64;
};

}  // namespace headrace
