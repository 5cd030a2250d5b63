// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/media/mp4_boxes.h"
#include "headrace/codecs/media/mp4_sample_table.h"
#include "headrace/codecs/video/frame_order.h"
#include "headrace/codecs/video/mp4_sample_entry.h"
#include "headrace/codecs/video/track_readers.h"
#include "headrace/codecs/video/video_file.h"

namespace headrace {
namespace {

using Bytes = std::span<const uint8_t>;

// The rotation part of the display matrix, which has 9 numbers a, b, u, c, d, v, x, y, w.
struct DisplayMatrix {
  int64_t a = 1, b = 0, c = 0, d = 1;
};

DisplayMatrix read_matrix(BigEndianReader& reader) {
  std::array<int32_t, 9> m{};
  for (int32_t& value : m) value = reader.i32();
  if (m[0] == 0 && m[1] == 0 && m[3] == 0 && m[4] == 0) return {};  // omitted by some writers
  return {.a = m[0], .b = m[1], .c = m[3], .d = m[4]};
}

// Rotation by one, then by the other; only signs and zeros matter.
DisplayMatrix product(const DisplayMatrix& one, const DisplayMatrix& other) {
  const auto sign = [](int64_t x) { return int64_t{x > 0} - int64_t{x < 0}; };
  const int64_t a = sign(one.a), b = sign(one.b), c = sign(one.c), d = sign(one.d);
  return {.a = a * sign(other.a) + b * sign(other.c),
          .b = a * sign(other.b) + b * sign(other.d),
          .c = c * sign(other.a) + d * sign(other.c),
          .d = c * sign(other.b) + d * sign(other.d)};
}

std::optional<int> quarter_turns(const DisplayMatrix& m) {
  if (m.b == 0 && m.c == 0 && m.a > 0 && m.d > 0) return 0;
  if (m.a == 0 && m.d == 0 && m.b > 0 && m.c < 0) return 1;
  if (m.b == 0 && m.c == 0 && m.a < 0 && m.d < 0) return 2;
  if (m.a == 0 && m.d == 0 && m.b < 0 && m.c > 0) return 3;
  return {};
}

// What is needed of a trak box to choose one.
struct Mp4Trak {
  Bytes content, stbl, dinf;
  uint32_t number = 0, ticks_per_second = 0, handler = 0;
  bool enabled = false;
  DisplayMatrix matrix;
  Bytes chapters;  // numbers of the tracks that are its chapters
};

uint64_t time_in(BigEndianReader& reader, bool wide) { return wide ? reader.u64() : reader.u32(); }

std::optional<Mp4Trak> read_trak(Bytes content) {
  Mp4Trak trak;
  trak.content = content;
  BigEndianReader tkhd(mp4_box_in(content, box_named("tkhd")));
  const uint32_t flags = tkhd.u32();
  const bool wide = flags >> 24 == 1;
  trak.enabled = flags & 1;
  time_in(tkhd, wide);  // creation time
  time_in(tkhd, wide);  // modification time
  trak.number = tkhd.u32();
  tkhd.skip(4);
  time_in(tkhd, wide);  // duration
  tkhd.skip(16);
  trak.matrix = read_matrix(tkhd);
  const Bytes mdia = mp4_box_in(content, box_named("mdia"));
  BigEndianReader mdhd(mp4_box_in(mdia, box_named("mdhd")));
  const bool wide_times = mdhd.u32() >> 24 == 1;
  time_in(mdhd, wide_times);
  time_in(mdhd, wide_times);
  trak.ticks_per_second = mdhd.u32();
  BigEndianReader hdlr(mp4_box_in(mdia, box_named("hdlr")));
  hdlr.skip(8);
  trak.handler = hdlr.u32();
  if (!tkhd.good() || !mdhd.good() || !hdlr.good()) return {};
  const Bytes minf = mp4_box_in(mdia, box_named("minf"));
  trak.dinf = mp4_box_in(minf, box_named("dinf"));
  trak.stbl = mp4_box_in(minf, box_named("stbl"));
  trak.chapters = mp4_box_in(mp4_box_in(content, box_named("tref")), box_named("chap"));
  return trak;
}

// The numbers of tracks that are chapter lists of others, sorted.
std::vector<uint32_t> chapters_of(const std::vector<Mp4Trak>& traks) {
  std::vector<uint32_t> out;
  for (const Mp4Trak& trak : traks) {
    for (size_t at = 0; at + 4 <= trak.chapters.size(); at += 4) {
      out.push_back(big_u32(trak.chapters, at));
    }
  }
  std::ranges::sort(out);
  return out;
}

Result<Mp4Trak> choose(Bytes moov) {
  std::vector<Mp4Trak> traks;
  Mp4Boxes boxes(moov);
  for (Mp4Box box; boxes.next(box);) {
    if (box.type != box_named("trak")) continue;
    const std::optional<Mp4Trak> trak = read_trak(box.content);
    if (!trak) return corrupt_video(kMp4Name, "a track has incomplete headers");
    traks.push_back(*trak);
    constexpr size_t kMaxTraks = 1000;
    if (traks.size() > kMaxTraks) return corrupt_video(kMp4Name, "it has thousands of tracks");
  }
  if (boxes.broken()) return corrupt_video(kMp4Name, "its moov box is damaged");
  const std::vector<uint32_t> chapters = chapters_of(traks);
  const Mp4Trak* chosen = nullptr;
  for (const Mp4Trak& trak : traks) {
    const bool is_chapters = std::ranges::binary_search(chapters, trak.number);
    if (trak.handler != box_named("vide") || is_chapters) continue;
    if (!chosen || (!chosen->enabled && trak.enabled)) chosen = &trak;
  }
  if (!chosen) return no_video_track(kMp4Name, "has no video track");
  return *chosen;
}

Result<Mp4Packets> read_packets(const ByteRanges& file, const Mp4TopLevel& top,
                                const Mp4Trak& trak) {
  Mp4Packets packets;
  if (Result<void> good = read_mp4_sample_table(file, trak.stbl, packets); !good) {
    return std::move(good.error());
  }
  if (top.fragments.empty()) return packets;
  const Mp4DefaultsByTrack defaults = read_mp4_fragment_defaults(top.moov);
  Buffer memory;
  for (const Mp4TopBox& fragment : top.fragments) {
    const Result<Bytes> moof = file.keep(fragment.content, fragment.bytes, memory);
    if (!moof) return moof.error();
    if (Result<void> good =
            read_mp4_fragment(file, *moof, fragment.at, defaults, trak.number, packets);
        !good) {
      return std::move(good.error());
    }
  }
  return packets;
}

}  // namespace

bool begins_like_mp4(Bytes bytes) {
  if (bytes.size() < 12) return false;
  const uint32_t first = big_u32(bytes, 4), brand = big_u32(bytes, 8);
  if (first == box_named("ftyp")) {
    // Images and audio files in the same container format.
    for (const auto& other : {"avif", "avis", "heic", "heix", "heim", "heis", "hevc", "hevx",
                              "mif1", "msf1", "crx ", "jp2 ", "jpx ", "M4A ", "M4B ", "M4P "}) {
      if (std::equal(other, other + 4, bytes.begin() + 8)) return false;
    }
    return true;
  }
  // QuickTime files from before ftyp existed, and standalone fragments.
  return first == box_named("moov") || first == box_named("mdat") || first == box_named("wide") ||
         first == box_named("styp") || (first == box_named("free") && brand != 0) ||
         first == box_named("skip");
}

Result<VideoTrack> read_mp4_track(const ByteRanges& file) {
  const Result<Mp4TopLevel> top = read_mp4_top_level(file);
  if (!top) return top.error();
  const Result<Mp4Trak> trak = choose(top->moov);
  if (!trak) return trak.error();
  BigEndianReader mvhd(mp4_box_in(top->moov, box_named("mvhd")));
  const bool wide = mvhd.u32() >> 24 == 1;
  time_in(mvhd, wide);
  time_in(mvhd, wide);
  // Only the edits' total length is used; like players, treats 0 as 1.
  const uint32_t movie_rate = std::max(mvhd.u32(), 1u);
  time_in(mvhd, wide);
  mvhd.skip(16);  // speed, volume, reserved
  const DisplayMatrix whole = read_matrix(mvhd);
  if (!mvhd.good()) return corrupt_video(kMp4Name, "its mvhd box is missing or too short");
  if (trak->ticks_per_second == 0) {
    return corrupt_video(kMp4Name, "its track has a timescale of 0");
  }

  VideoTrack track;
  track.ticks_per_second = trak->ticks_per_second;
  const std::optional<int> turns = quarter_turns(product(trak->matrix, whole));
  if (!turns) {
    return unsupported_video(
        kMp4Name,
        "mirrors its images, or rotates them by an angle that is not a multiple of 90 degrees",
        kReencode);
  }
  track.quarter_turns = *turns;
  Result<Mp4Packets> packets = read_packets(file, *top, *trak);
  if (!packets) return std::move(packets.error());
  if (Result<void> good =
          read_mp4_sample_entry(mp4_box_in(trak->stbl, box_named("stsd")), trak->dinf,
                                std::max(packets->description, 1u), track);
      !good) {
    return std::move(good.error());
  }
  const Result<Mp4Edits> edits =
      read_mp4_edits(mp4_box_in(mp4_box_in(trak->content, box_named("edts")), box_named("elst")),
                     movie_rate, trak->ticks_per_second);
  if (!edits) return edits.error();
  track.packets = std::move(packets->packets);
  if (Result<void> good = order_frames(file, edits->begin, edits->end, track); !good) {
    return std::move(good.error());
  }
  if (track.frames.empty()) {
    return no_video_track(
        kMp4Name, "shows none of its " + std::to_string(track.packets.size()) + " video packets");
  }
  for (MediaPacket& packet : track.packets) packet.pts += edits->delay;
  const uint32_t last = track.frames.back();
  const int64_t last_end = track.packets[last].pts + packets->durations[last];
  track.duration =
      edits->end == INT64_MAX ? last_end : std::min(last_end, edits->end + edits->delay);
  return track;
}

namespace {

const VideoContainer kMp4{
    .name = "mp4",
    .doc = "MP4, MOV and 3GP, whole and in fragments: H.264, HEVC, VP8, VP9, AV1, MPEG-4, MJPEG.",
    .suffixes = {".mp4", ".m4v", ".mov", ".qt", ".3gp", ".3g2"},
    .sniff = begins_like_mp4,
    .read = read_mp4_track,
    .has_table = true};
const Register<VideoContainer> registered_mp4(kMp4);

}  // namespace
}  // namespace headrace
