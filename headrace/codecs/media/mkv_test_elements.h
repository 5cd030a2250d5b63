// SPDX-License-Identifier: Apache-2.0
// Writes small Matroska files for tests.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/base/bytes_test_join.h"
#include "headrace/codecs/media/mkv_ids.h"

namespace headrace::mkv_test {

using bytes_test::Bytes;
using bytes_test::operator+;

inline Bytes number(uint64_t value, int bytes) {
  Bytes out;
  while (bytes-- > 0) out.push_back(static_cast<uint8_t>(value >> 8 * bytes));
  return out;
}
inline Bytes letters(std::string_view text) { return {text.begin(), text.end()}; }
inline Bytes real(double value) { return number(std::bit_cast<uint64_t>(value), 8); }

inline Bytes id(uint32_t name) { return number(name, 4 - std::countl_zero(name) / 8); }
inline Bytes element(uint32_t name, const Bytes& content) {
  return id(name) + number(uint64_t{1} << 56 | content.size(), 8) + content;
}
// Ends before the first element that cannot be its child.
inline Bytes endless(uint32_t name, const Bytes& content) {
  return id(name) + Bytes{0xFF} + content;
}
inline Bytes element(uint32_t name, uint64_t value) { return element(name, number(value, 4)); }

inline Bytes block(uint64_t track, int16_t time, uint8_t flags, const Bytes& frame) {
  return number(0x80 | track, 1) + number(static_cast<uint16_t>(time), 2) + Bytes{flags} + frame;
}
inline Bytes simple(int16_t time, bool key, const Bytes& frame) {
  return element(mkv::kSimpleBlock, block(1, time, key ? 0x80 : 0, frame));
}

// One video track, and the clusters' contents.
struct Film {
  std::string_view codec = "V_MPEG4/ISO/AVC";
  Bytes parameters{1, 100, 0, 30, 0xFF, 0xE0, 0};
  Bytes more_of_track, more_of_video;
  uint64_t type = 1, scale = 1000000;
  Bytes other_tracks, clusters;
  bool endless_segment = false;

  Bytes track() const {
    const Bytes video = element(mkv::kPixelWidth, 64) + element(mkv::kPixelHeight, 48);
    return element(mkv::kTrack,
                   element(mkv::kTrackNumber, 1) + element(mkv::kTrackType, type) +
                       element(mkv::kCodecId, letters(codec)) +
                       (parameters.empty() ? Bytes{} : element(mkv::kCodecPrivate, parameters)) +
                       element(mkv::kVideo, video + more_of_video) + more_of_track);
  }
  Bytes file() const {
    const Bytes content = element(mkv::kInfo, element(mkv::kTimestampScale, scale)) +
                          element(mkv::kTracks, other_tracks + track()) + clusters;
    return element(mkv::kHeader, element(mkv::kDocType, letters("matroska"))) +
           (endless_segment ? endless(mkv::kSegment, content) : element(mkv::kSegment, content));
  }
};

}  // namespace headrace::mkv_test
