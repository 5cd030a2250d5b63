// SPDX-License-Identifier: Apache-2.0
// Iterates over MP4 boxes (ISO/IEC 14496-12, 4.2), none of which exceeds its parent. Allocates
// nothing; the caller owns the bytes. Also reads the headers of a file's top-level boxes, and all
// of the box moov, which has the positions of the packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/codecs/image/boxes.h"
#include "headrace/codecs/media/big_endian_reader.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

inline constexpr std::string_view kMp4Name = "MP4";

struct Mp4Box {
  uint32_t type = 0;
  size_t at = 0;  // offset of its header in its parent
  std::span<const uint8_t> content;
};

class Mp4Boxes {
 public:
  explicit Mp4Boxes(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  // False at the end, and if there is no complete box.
  bool next(Mp4Box& box) {
    const std::span<const uint8_t> rest = bytes_.subspan(at_);
    if (rest.size() < 8) return false;  // QuickTime ends some lists with four zeros
    uint64_t length = big_u32(rest, 0), head = 8;
    box.type = big_u32(rest, 4);
    box.at = at_;
    if (length == 1 && rest.size() >= 16) {
      length = uint64_t{big_u32(rest, 8)} << 32 | big_u32(rest, 12);
      head = 16;
    }
    if (length == 0 && box.type != 0) length = rest.size();  // to the end
    if (length < head || length > rest.size()) {
      broken_ = box.type != 0;  // some files are padded with zeros
      truncated_ = length > rest.size();
      return false;
    }
    box.content = rest.subspan(head, length - head);
    at_ += length;
    return true;
  }

  // After next() returned false: whether the next box has an invalid length.
  bool broken() const { return broken_; }
  bool truncated() const { return truncated_; }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool broken_ = false, truncated_ = false;
};

// The first box of a type; empty if there is none.
inline std::span<const uint8_t> mp4_box_in(std::span<const uint8_t> bytes, uint32_t type) {
  Mp4Boxes boxes(bytes);
  for (Mp4Box box; boxes.next(box);) {
    if (box.type == type) return box.content;
  }
  return {};
}

// A top-level box, of which only the header has been read.
struct Mp4TopBox {
  uint32_t type = 0;
  uint64_t at = 0, content = 0, bytes = 0;  // offsets of its header and content, and the content's
                                            // size
};

struct Mp4TopLevel {
  std::span<const uint8_t> moov;  // in the file's memory or in moov_memory
  Buffer moov_memory;
  std::vector<Mp4TopBox> fragments;
};

// HR0362 if the file is truncated, or has no moov.
Result<Mp4TopLevel> read_mp4_top_level(const ByteRanges& file);

}  // namespace headrace
