// SPDX-License-Identifier: Apache-2.0
// Iterates over the NAL units of an H.264 or HEVC packet, and over the bytes of a unit (ITU-T
// H.264, 7.3.1; H.265, 7.3.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/codecs/media/big_endian_reader.h"
#include "headrace/codecs/video/nal.h"

namespace headrace {

using Nal = std::span<const uint8_t>;

// Consecutive units, each with its header of at least one byte (HEVC: two).
class NalUnits {
 public:
  NalUnits(const NalFraming& framing, std::span<const uint8_t> packet)
      : rest_(packet),
        length_bytes_(framing.length_bytes),
        least_(framing.codec == VideoCodec::kHEVC ? 2 : 1) {}
  bool next(Nal& unit) {
    if (rest_.empty() || broken_) return false;
    BigEndianReader reader(rest_);
    const uint64_t length = reader.number(length_bytes_);
    unit = reader.bytes(length);
    broken_ = !reader.good() || length < least_;
    rest_ = reader.rest();
    return !broken_;
  }
  bool broken() const { return broken_; }

 private:
  std::span<const uint8_t> rest_;
  int length_bytes_;
  size_t least_;
  bool broken_ = false;
};

inline int h264_type(Nal unit) { return unit[0] & 0x1F; }
constexpr int kH264FirstSlice = 1, kH264LastSlice = 5, kH264Idr = 5;

// The bytes of a unit without emulation prevention bytes.
class PayloadBytes {
 public:
  explicit PayloadBytes(Nal bytes) : bytes_(bytes) {}
  // -1 after the last one.
  int next() {
    if (zeros_ >= 2 && at_ < bytes_.size() && bytes_[at_] == 3) {
      ++at_;
      zeros_ = 0;
    }
    if (at_ >= bytes_.size()) return -1;
    const int byte = bytes_[at_++];
    zeros_ = byte == 0 ? zeros_ + 1 : 0;
    return byte;
  }

 private:
  Nal bytes_;
  size_t at_ = 0;
  int zeros_ = 0;
};

}  // namespace headrace
