// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/mp4_edits.h"

#include "headrace/codecs/media/container_errors.h"
#include "headrace/codecs/media/mp4_boxes.h"

namespace headrace {
namespace {

constexpr int64_t kMostTicks = int64_t{1} << 60;

// Ticks of the movie in those of the media, rounded to the nearest.
int64_t media_ticks(uint64_t ticks, uint32_t movie_rate, uint32_t media_rate) {
  __extension__ using Wide = unsigned __int128;
  const Wide rounded = (Wide{ticks} * media_rate + movie_rate / 2) / movie_rate;
  return rounded > Wide{kMostTicks} ? kMostTicks : static_cast<int64_t>(rounded);
}

struct Edit {
  uint64_t duration = 0;  // in the movie's ticks
  int64_t begin = 0;      // of the media; -1: nothing is shown
  uint32_t rate = 0;
};

Error unread_edits(std::string what) {
  return unread_video(kMp4Name, std::move(what),
                      "make one piece of it once: ffmpeg -i in.mp4 -c:v libx264 -crf 18 out.mp4");
}

}  // namespace

Result<Mp4Edits> read_mp4_edits(std::span<const uint8_t> elst, uint32_t movie_rate,
                                uint32_t media_rate) {
  constexpr uint32_t kAsFastAsItIs = 0x10000;
  Mp4Edits out;
  if (elst.empty()) return out;
  BigEndianReader reader(elst);
  const bool wide = reader.u32() >> 24 == 1;
  const uint32_t count = reader.u32();
  uint64_t empty = 0;  // the movie's ticks
  bool has_piece = false;
  for (uint32_t i = 0; i < count; ++i) {
    Edit edit;
    edit.duration = wide ? reader.u64() : reader.u32();
    edit.begin = wide ? reader.i64() : reader.i32();
    edit.rate = reader.u32();
    if (!reader.good()) return corrupt_video(kMp4Name, "its edit list is truncated");
    if (edit.duration > uint64_t{kMostTicks} || edit.begin < -1 || edit.begin > kMostTicks) {
      return corrupt_video(kMp4Name, "its edit list has times without end");
    }
    if (edit.begin == -1) {
      if (has_piece && i + 1 == count) break;  // nothing follows that could be late
      if (has_piece) return unread_edits("shows its images in several pieces");
      empty += edit.duration;
      continue;
    }
    if (edit.rate != kAsFastAsItIs) return unread_edits("shows its images faster or slower");
    const int64_t length = media_ticks(edit.duration, movie_rate, media_rate);
    const int64_t slack = media_rate / movie_rate + 1;  // what rounding can make of a length
    if (has_piece &&
        (out.end > kMostTicks || edit.begin < out.end - slack || edit.begin > out.end + slack)) {
      return unread_edits("shows its images in several pieces");
    }
    if (!has_piece) out.begin = edit.begin;
    // A duration of 0: all that there is, as files say that are written while they are recorded.
    out.end = edit.duration == 0 ? INT64_MAX : edit.begin + length;
    has_piece = true;
  }
  const int64_t late = media_ticks(empty, movie_rate, media_rate);
  out.delay = late - (has_piece ? out.begin : 0);
  return out;
}

}  // namespace headrace
