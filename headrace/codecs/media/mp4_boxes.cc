// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/mp4_boxes.h"

#include <string>

#include "headrace/codecs/media/media_errors.h"

namespace headrace {
namespace {

// Like Mp4Boxes::next, starting at box.at; false if there is no complete box.
Result<bool> next_box(const ByteRanges& file, Mp4TopBox& box, bool& truncated) {
  const uint64_t left = file.size() - box.at;
  if (left < 8) return false;
  const Result<std::span<const uint8_t>> head = file.at(box.at, 16);
  if (!head) return head.error();
  box.type = big_u32(*head, 4);
  uint64_t length = big_u32(*head, 0), head_bytes = 8;
  if (length == 1 && head->size() == 16) {
    length = uint64_t{big_u32(*head, 8)} << 32 | big_u32(*head, 12);
    head_bytes = 16;
  }
  if (length == 0 && box.type != 0) length = left;  // to the end
  truncated = length > left;
  if (length < head_bytes || truncated) return false;
  box.content = box.at + head_bytes;
  box.bytes = length - head_bytes;
  return true;
}

}  // namespace

Result<Mp4TopLevel> read_mp4_top_level(const ByteRanges& file) {
  Mp4TopLevel out;
  Mp4TopBox box;
  bool truncated = false;
  while (true) {
    const Result<bool> found = next_box(file, box, truncated);
    if (!found) return found.error();
    if (!*found) break;
    if (box.type == box_named("moov") && out.moov.empty()) {
      const Result<std::span<const uint8_t>> moov =
          file.keep(box.content, box.bytes, out.moov_memory);
      if (!moov) return moov.error();
      out.moov = *moov;
    }
    if (box.type == box_named("moof")) out.fragments.push_back(box);
    box.at = box.content + box.bytes;
  }
  // Bytes after the last box are ignored as junk unless they have the type of a known box.
  const bool known = box.type == box_named("moov") || box.type == box_named("moof") ||
                     box.type == box_named("mdat");
  if (truncated && known) {
    return truncated_video(kMp4Name,
                           "ends inside the box that begins at byte " + std::to_string(box.at));
  }
  if (out.moov.empty()) {
    return truncated_video(
        kMp4Name, "has no moov box (the table of its packets, often at the end of the file)");
  }
  return out;
}

}  // namespace headrace
