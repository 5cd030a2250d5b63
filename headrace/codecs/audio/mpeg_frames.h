// SPDX-License-Identifier: Apache-2.0
// The four bytes that every frame of MPEG audio begins with (ISO/IEC 11172-3, 2.4.2.3; 13818-3).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

inline bool is_mpeg_frame(std::span<const uint8_t> bytes, size_t at = 0) {
  if (at + 4 > bytes.size()) return false;
  const uint8_t a = bytes[at + 1], b = bytes[at + 2];
  return bytes[at] == 0xFF && (a & 0xE0) == 0xE0 && (a & 0x18) != 0x08 && (a & 0x06) != 0 &&
         (b & 0xF0) != 0xF0 && (b & 0x0C) != 0x0C;
}

// How long the frame is; 0 where it does not say (free format). REQUIRES: is_mpeg_frame().
inline size_t mpeg_frame_bytes(std::span<const uint8_t> bytes, size_t at = 0) {
  using Rates = std::array<uint16_t, 15>;  // kbit/s
  constexpr Rates kOne{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448};
  constexpr Rates kTwo{0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384};
  constexpr Rates kThree{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320};
  constexpr Rates kOneLow{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256};
  constexpr Rates kLow{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160};
  constexpr std::array<uint32_t, 3> kHertz{44100, 48000, 32000};
  const int version = bytes[at + 1] >> 3 & 3, layer = 4 - (bytes[at + 1] >> 1 & 3);
  const bool low = version != 3;  // MPEG-2, and 2.5
  const Rates& rates = layer == 1   ? (low ? kOneLow : kOne)
                       : low        ? kLow
                       : layer == 2 ? kTwo
                                    : kThree;
  const uint32_t bits = rates[bytes[at + 2] >> 4] * 1000u;
  const uint32_t hertz = kHertz[bytes[at + 2] >> 2 & 3] >> (version == 3   ? 0
                                                            : version == 2 ? 1
                                                                           : 2);
  const uint32_t padding = bytes[at + 2] >> 1 & 1;
  if (layer == 1) return (12 * bits / hertz + padding) * 4;
  return (layer == 3 && low ? 72 : 144) * bits / hertz + padding;
}

// Whether two frames of one kind, one behind the other, lie somewhere in [begin, end).
inline Result<bool> mpeg_frames_follow(const ByteRanges& file, uint64_t begin, uint64_t end) {
  constexpr uint64_t kBlock = 1 << 16, kLongestFrame = 2881, kHeader = 4;
  for (uint64_t at = begin; at < end; at += kBlock) {
    const Result<std::span<const uint8_t>> found =
        file.at(at, std::min(end - at, kBlock + kLongestFrame + kHeader));
    if (!found) return found.error();
    const std::span<const uint8_t> bytes = *found;
    for (size_t i = 0; i < std::min<uint64_t>(bytes.size(), kBlock); ++i) {
      if (!is_mpeg_frame(bytes, i)) continue;
      const size_t next = i + mpeg_frame_bytes(bytes, i);
      const bool same_kind = next > i && is_mpeg_frame(bytes, next) &&
                             bytes[i + 1] >> 1 == bytes[next + 1] >> 1 &&
                             (bytes[i + 2] & 0x0C) == (bytes[next + 2] & 0x0C);
      if (same_kind) return true;
    }
  }
  return false;
}

}  // namespace headrace
