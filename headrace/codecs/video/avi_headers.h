// SPDX-License-Identifier: Apache-2.0
// The chunks of an AVI file, and the headers of its first video track (Microsoft's "AVI RIFF File
// Reference", and OpenDML 1.02 for large files).
#pragma once

#include <cstdint>

#include "headrace/base/error.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

inline constexpr const char* kAviName = "AVI";

// FourCC as a number, the first letter in the low byte, as in files.
consteval uint32_t avi_name(const char (&letters)[5]) {
  uint32_t name = 0;
  for (int i = 3; i >= 0; --i) name = name << 8 | static_cast<uint8_t>(letters[i]);
  return name;
}

struct AviChunk {
  uint32_t name = 0, list = 0;  // list: the type of a RIFF or LIST chunk, which contain chunks
  uint64_t begin = 0, end = 0;  // of its content
};

// Consecutive chunks in [begin, end).
class AviChunks {
 public:
  AviChunks(const ByteRanges& file, uint64_t begin, uint64_t end)
      : file_(file), at_(begin), end_(end) {}
  // False at the end. A chunk may claim to extend past the end of the file, which callers have to
  // check.
  Result<bool> next(AviChunk& chunk);
  // Continues with a list's contents.
  void enter(const AviChunk& list) { at_ = list.begin; }

 private:
  const ByteRanges& file_;
  uint64_t at_, end_;
};

struct AviHeaders {
  VideoTrack track;        // without packets; parameters as stored outside of packets
  int number = 0;          // index of the stream
  bool is_xvid = false;    // made by Xvid
  int64_t first_tick = 0;  // of the first packet
};

// `list`: the header list, "hdrl".
Result<AviHeaders> read_avi_headers(const ByteRanges& file, const AviChunk& list);

// Whether one of its streams is audio. REQUIRES: its video headers could be read.
Result<bool> avi_has_audio(const ByteRanges& file);

}  // namespace headrace
