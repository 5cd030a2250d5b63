// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/hevc_size.h"

#include <algorithm>
#include <cstddef>

#include "headrace/codecs/image/byte_order.h"

namespace headrace {
namespace {

// Reads bits of a NAL unit's payload, without emulation prevention bytes. They are zero after the
// end.
class NalBits {
 public:
  explicit NalBits(std::span<const uint8_t> payload) : bytes_(payload) {}
  uint32_t take(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i) value = value << 1 | bit();
    return value;
  }
  void skip(int count) {
    for (int i = 0; i < count; ++i) bit();
  }
  // Exp-Golomb, ue(v).
  uint32_t number() {
    int zeros = 0;
    while (at_ < bytes_.size() && zeros < 31 && bit() == 0) ++zeros;
    return (1u << zeros) - 1 + take(zeros);
  }

 private:
  uint32_t bit() {
    if (at_ >= bytes_.size()) return 0;
    const uint32_t value = bytes_[at_] >> (7 - bit_) & 1u;
    if (++bit_ < 8) return value;
    bit_ = 0;
    zeros_ = bytes_[at_] == 0 ? zeros_ + 1 : 0;
    ++at_;
    if (zeros_ >= 2 && at_ < bytes_.size() && bytes_[at_] == 3) {
      ++at_;
      zeros_ = 0;
    }
    return value;
  }

  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  int bit_ = 0, zeros_ = 0;
};

// Width times height of a sequence parameter set; 0 for all other NAL units.
uint64_t pixels_of_nal(std::span<const uint8_t> nal) {
  constexpr int kSequenceParameters = 33;
  if (nal.size() < 3 || (nal[0] >> 1 & 63) != kSequenceParameters) return 0;
  if ((nal[0] & 1) != 0 || nal[1] >> 3 != 0) return 0;
  constexpr int kProfileBits = 88, kLevelBits = 8;
  NalBits in(nal.subspan(2));
  in.skip(4);
  const int further_layers = int(in.take(3));
  in.skip(1 + kProfileBits + kLevelBits);
  int further_bits = 0;
  for (int i = 0; i < further_layers; ++i) {
    further_bits += in.take(1) ? kProfileBits : 0;
    further_bits += in.take(1) ? kLevelBits : 0;
  }
  if (further_layers > 0) in.skip(2 * (8 - further_layers));
  in.skip(further_bits);
  in.number();  // its id
  if (in.number() == 3) in.skip(1);
  const uint64_t width = in.number();
  return width * in.number();
}

}  // namespace

uint64_t pixels_of_hevc_item(std::span<const uint8_t> data) {
  uint64_t most = 0;
  while (data.size() >= 4) {
    const size_t length = std::min<size_t>(big_u32(data, 0), data.size() - 4);
    most = std::max(most, pixels_of_nal(data.subspan(4, length)));
    data = data.subspan(4 + length);
  }
  return most;
}

uint64_t pixels_of_hevc_configuration(std::span<const uint8_t> record) {
  constexpr size_t kHead = 23;
  if (record.size() < kHead) return 0;
  uint64_t most = 0;
  std::span<const uint8_t> rest = record.subspan(kHead);
  for (int arrays = record[kHead - 1]; arrays > 0 && rest.size() >= 3; --arrays) {
    const uint32_t units = big_u16(rest, 1);
    rest = rest.subspan(3);
    for (uint32_t i = 0; i < units && rest.size() >= 2; ++i) {
      const size_t length = std::min<size_t>(big_u16(rest, 0), rest.size() - 2);
      most = std::max(most, pixels_of_nal(rest.subspan(2, length)));
      rest = rest.subspan(2 + length);
    }
  }
  return most;
}

}  // namespace headrace
