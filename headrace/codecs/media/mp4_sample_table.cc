// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/mp4_sample_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/media/mp4_boxes.h"

namespace headrace {
namespace {

Error damaged(const std::string& what) { return corrupt_video(kMp4Name, what); }

// A box with a count and that many rows of equal size.
struct Rows {
  std::span<const uint8_t> bytes;
  uint32_t count = 0;
  bool there = false, whole = true;

  Rows(std::span<const uint8_t> stbl, uint32_t type, size_t row) {
    const std::span<const uint8_t> content = mp4_box_in(stbl, type);
    if (content.empty()) return;
    BigEndianReader reader(content);
    reader.skip(4);  // version, flags
    count = reader.u32();
    bytes = reader.bytes(uint64_t{count} * row);
    there = whole = reader.good();
  }
};

// Values in order, each repeated as often as its count says.
class RunLengths {
 public:
  RunLengths(std::span<const uint8_t> stbl, uint32_t type) : rows_(stbl, type, 8) {}
  bool there() const { return rows_.there; }
  bool whole() const { return rows_.whole; }
  // False after the last one.
  bool next(uint32_t& value) {
    while (left_ == 0) {
      if (row_ == rows_.count) return false;
      left_ = big_u32(rows_.bytes, size_t{row_} * 8);
      value_ = big_u32(rows_.bytes, size_t{row_++} * 8 + 4);
    }
    --left_;
    value = value_;
    return true;
  }

 private:
  Rows rows_;
  uint32_t row_ = 0, left_ = 0, value_ = 0;
};

// Sizes of samples: one for all, or a table of 32-bit values, or of 4, 8 or 16 bits.
class Sizes {
 public:
  explicit Sizes(std::span<const uint8_t> stbl) {
    std::span<const uint8_t> content = mp4_box_in(stbl, box_named("stsz"));
    const bool compact = content.empty();
    if (compact) content = mp4_box_in(stbl, box_named("stz2"));
    BigEndianReader reader(content);
    reader.skip(4);
    const uint32_t first = reader.u32();
    count_ = reader.u32();
    if (compact) {
      bits_ = first & 0xFF;
    } else if (first > 0) {
      bits_ = 0;
      equal_ = first;
    }
    table_ = reader.bytes((uint64_t{count_} * bits_ + 7) / 8);
    const bool known = bits_ == 0 || bits_ == 4 || bits_ == 8 || bits_ == 16 || bits_ == 32;
    good_ = reader.good() && known && (bits_ > 0 || equal_ > 0);
  }
  bool good() const { return good_; }
  uint32_t count() const { return count_; }
  uint32_t operator[](size_t i) const {
    switch (bits_) {
      case 0:
        return equal_;
      case 4:
        return table_[i / 2] >> (i % 2 ? 0 : 4) & 0xF;
      case 8:
        return table_[i];
      case 16:
        return big_u16(table_, i * 2);
      default:
        return big_u32(table_, i * 4);
    }
  }

 private:
  std::span<const uint8_t> table_;
  uint32_t count_ = 0, bits_ = 32, equal_ = 0;
  bool good_ = false;
};

// Offsets of chunks, with 32 or 64 bits.
class Chunks {
 public:
  explicit Chunks(std::span<const uint8_t> stbl)
      : narrow_(stbl, box_named("stco"), 4), wide_(stbl, box_named("co64"), 8) {}
  bool whole() const { return narrow_.whole && wide_.whole; }
  uint32_t count() const { return narrow_.there ? narrow_.count : wide_.count; }
  uint64_t operator[](size_t i) const {
    if (narrow_.there) return big_u32(narrow_.bytes, i * 4);
    return uint64_t{big_u32(wide_.bytes, i * 8)} << 32 | big_u32(wide_.bytes, i * 8 + 4);
  }

 private:
  Rows narrow_, wide_;
};

// A set of sample numbers, counted from 1, ascending (stss and the like).
class SampleSet {
 public:
  SampleSet(std::span<const uint8_t> stbl, uint32_t type) : rows_(stbl, type, 4) {}
  bool there() const { return rows_.there; }
  bool whole() const { return rows_.whole; }
  // REQUIRES: numbers ascend from call to call.
  bool has(uint32_t number) {
    while (at_ < rows_.count && big_u32(rows_.bytes, size_t{at_} * 4) < number) ++at_;
    return at_ < rows_.count && big_u32(rows_.bytes, size_t{at_} * 4) == number;
  }

 private:
  Rows rows_;
  uint32_t at_ = 0;
};

// When samples are decoded and shown, and which are key frames: everything except their positions.
class Times {
 public:
  explicit Times(std::span<const uint8_t> stbl)
      : durations_(stbl, box_named("stts")),
        delays_(stbl, box_named("ctts")),
        keys_(stbl, box_named("stss")),
        partial_keys_(stbl, box_named("stps")) {}
  bool whole() const {
    return durations_.whole() && delays_.whole() && keys_.whole() && partial_keys_.whole();
  }
  // Reads the sample with this number, from 1; false if the tables end before it.
  bool next(uint32_t number, MediaPacket& packet, uint32_t& duration, int64_t& decoded) {
    uint32_t delay = 0;
    if (!durations_.next(duration) || duration > INT32_MAX) return false;
    if (delays_.there() && !delays_.next(delay)) return false;
    packet.pts = decoded + static_cast<int32_t>(delay);
    packet.key = !keys_.there() || keys_.has(number) || partial_keys_.has(number);
    decoded += duration;
    return true;
  }

 private:
  RunLengths durations_, delays_;
  SampleSet keys_, partial_keys_;
};

constexpr int64_t kMaxTicks = int64_t{1} << 60;

// Converts ticks of the movie to ticks of the media, rounded to the nearest.
int64_t media_ticks(uint64_t ticks, uint32_t movie_rate, uint32_t media_rate) {
  __extension__ using Wide = unsigned __int128;
  const Wide rounded = (Wide{ticks} * media_rate + movie_rate / 2) / movie_rate;
  return rounded > Wide{kMaxTicks} ? kMaxTicks : static_cast<int64_t>(rounded);
}

struct Edit {
  uint64_t duration = 0;  // in the movie's ticks
  int64_t begin = 0;      // media time; -1: nothing is shown
  uint32_t rate = 0;
};

Error unsupported_edits(std::string what) {
  return unsupported_video(kMp4Name, std::move(what),
                           "re-encode it once: ffmpeg -i in.mp4 -c:v libx264 -crf 18 out.mp4");
}

}  // namespace

Result<void> Mp4Packets::add(const ByteRanges& file, MediaPacket packet, uint32_t duration) {
  if (packet.size == 0) return {};
  const auto offset = static_cast<uint64_t>(packet.offset);
  if (offset > file.size() || packet.size > file.size() - offset) {
    return truncated_video(kMp4Name, "has " + std::to_string(file.size()) +
                                         " bytes, but a packet of " + std::to_string(packet.size) +
                                         " at " + std::to_string(offset));
  }
  if (packets.size() == kMaxVideoPackets) return too_many_packets(kMp4Name);
  bytes += packet.size;
  if (bytes > file.size()) return damaged("its packets overlap");
  packets.push_back(packet);
  durations.push_back(duration);
  return {};
}

Result<void> Mp4Packets::coded_by(uint32_t entry) {
  if (description != 0 && description != entry) {
    return unsupported_video(kMp4Name, "changes its codec parameters between packets", kReencode);
  }
  description = entry;
  return {};
}

Result<void> read_mp4_sample_table(const ByteRanges& file, std::span<const uint8_t> stbl,
                                   Mp4Packets& out) {
  const Sizes sizes(stbl);
  const Chunks chunks(stbl);
  const Rows runs(stbl, box_named("stsc"), 12);  // of chunks with the same number of samples
  Times times(stbl);
  if (!sizes.good() || !chunks.whole() || !runs.whole || !times.whole()) {
    return damaged("its sample table is damaged");
  }
  out.packets.reserve(std::min({size_t{sizes.count()}, kMaxVideoPackets, size_t(file.size())}));
  out.durations.reserve(out.packets.capacity());
  uint32_t sample = 0, run = 0, in_chunk = 0;
  for (uint32_t chunk = 1; chunk <= chunks.count() && sample < sizes.count(); ++chunk) {
    while (run < runs.count && big_u32(runs.bytes, size_t{run} * 12) == chunk) {
      in_chunk = big_u32(runs.bytes, size_t{run} * 12 + 4);
      const uint32_t entry = big_u32(runs.bytes, size_t{run++} * 12 + 8);
      if (in_chunk == 0) continue;
      if (Result<void> good = out.coded_by(entry); !good) return good;
    }
    uint64_t offset = chunks[chunk - 1];
    if (offset > INT64_MAX / 2) return damaged("a chunk begins at " + std::to_string(offset));
    for (uint32_t i = 0; i < in_chunk && sample < sizes.count(); ++i) {
      MediaPacket packet{.offset = static_cast<int64_t>(offset), .size = sizes[sample++]};
      uint32_t duration = 0;
      if (!times.next(sample, packet, duration, out.end)) {
        return damaged("its times end at packet " + std::to_string(sample - 1) + " of " +
                       std::to_string(sizes.count()));
      }
      offset += packet.size;
      if (Result<void> good = out.add(file, packet, duration); !good) return good;
    }
  }
  if (sample < sizes.count()) {
    return damaged("its chunks contain " + std::to_string(sample) + " of " +
                   std::to_string(sizes.count()) + " packets");
  }
  return {};
}

Result<Mp4Edits> read_mp4_edits(std::span<const uint8_t> elst, uint32_t movie_rate,
                                uint32_t media_rate) {
  constexpr uint32_t kNormalSpeed = 0x10000;
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
    if (edit.duration > uint64_t{kMaxTicks} || edit.begin < -1 || edit.begin > kMaxTicks) {
      return corrupt_video(kMp4Name, "its edit list has unbounded times");
    }
    if (edit.begin == -1) {
      if (has_piece && i + 1 == count) break;  // no later edit that could be delayed
      if (has_piece) return unsupported_edits("has an edit list with several segments");
      empty += edit.duration;
      continue;
    }
    if (edit.rate != kNormalSpeed)
      return unsupported_edits("has an edit list that changes the playback speed");
    const int64_t length = media_ticks(edit.duration, movie_rate, media_rate);
    const int64_t slack = media_rate / movie_rate + 1;  // rounding error of a length
    if (has_piece &&
        (out.end > kMaxTicks || edit.begin < out.end - slack || edit.begin > out.end + slack)) {
      return unsupported_edits("has an edit list with several segments");
    }
    if (!has_piece) out.begin = edit.begin;
    // A duration of 0 means everything, as in files written during recording.
    out.end = edit.duration == 0 ? INT64_MAX : edit.begin + length;
    has_piece = true;
  }
  const int64_t late = media_ticks(empty, movie_rate, media_rate);
  out.delay = late - (has_piece ? out.begin : 0);
  return out;
}

}  // namespace headrace
