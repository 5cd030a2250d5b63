// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/media/mp4_boxes.h"
#include "headrace/codecs/media/mp4_sample_table.h"

namespace headrace {
namespace {

// Flags of a sample: it is not a key frame, or depends on others.
constexpr uint32_t kNoKey = 0x10000, kNeedsOthers = 0x1000000;
// Limit for times, so that sums cannot overflow; real clocks never get there.
constexpr uint64_t kMaxTime = uint64_t{1} << 60;

Error damaged_fragment(const std::string& what) {
  return corrupt_video(kMp4Name, "a fragment " + what);
}

struct FragmentHeader {
  uint32_t track = 0;
  uint64_t base = 0;  // base offset of its runs
  Mp4FragmentDefaults defaults;
};

// `follows`: end of the data of the previous track in the fragment.
Result<FragmentHeader> read_header(std::span<const uint8_t> traf,
                                   const Mp4DefaultsByTrack& defaults, size_t moof_at,
                                   uint64_t follows) {
  constexpr uint32_t kBase = 1, kDescription = 2, kDuration = 8, kSize = 0x10, kFlags = 0x20;
  constexpr uint32_t kBaseIsMoof = 0x20000;
  BigEndianReader reader(mp4_box_in(traf, box_named("tfhd")));
  const uint32_t flags = reader.u32();
  FragmentHeader header;
  header.track = reader.u32();
  if (const auto said = defaults.find(header.track); said != defaults.end()) {
    header.defaults = said->second;
  }
  header.base = flags & kBaseIsMoof ? moof_at : follows;
  if (flags & kBase) header.base = reader.u64();
  if (flags & kDescription) header.defaults.description = reader.u32();
  if (flags & kDuration) header.defaults.duration = reader.u32();
  if (flags & kSize) header.defaults.size = reader.u32();
  if (flags & kFlags) header.defaults.flags = reader.u32();
  if (!reader.good()) return damaged_fragment("has an incomplete header");
  return header;
}

// Advances the decoding time by this many ticks.
Result<void> last(uint64_t ticks, Mp4Packets& out) {
  if (ticks > kMaxTime || out.end > static_cast<int64_t>(2 * kMaxTime - ticks)) {
    return damaged_fragment("has timestamps out of range");
  }
  out.end += static_cast<int64_t>(ticks);
  return {};
}

// Consecutive packets starting at `at`, which is moved past the last one. For other tracks only
// their bytes are counted (`out` is null).
Result<void> read_run(const ByteRanges& file, std::span<const uint8_t> trun,
                      const FragmentHeader& header, uint64_t& at, Mp4Packets* out) {
  constexpr uint32_t kOffset = 1, kFirstFlags = 4;
  constexpr uint32_t kDuration = 0x100, kSize = 0x200, kFlags = 0x400, kDelay = 0x800;
  BigEndianReader reader(trun);
  const uint32_t what = reader.u32(), count = reader.u32();
  if (what & kOffset) at = header.base + static_cast<uint64_t>(int64_t{reader.i32()});
  const uint32_t first_flags = what & kFirstFlags ? reader.u32() : 0;
  const uint64_t row = 4 * ((what & kDuration ? 1u : 0u) + (what & kSize ? 1u : 0u) +
                            (what & kFlags ? 1u : 0u) + (what & kDelay ? 1u : 0u));
  if (!reader.good() || row * count > reader.rest().size()) {
    return damaged_fragment("ends before its packets");
  }
  const Mp4FragmentDefaults& defaults = header.defaults;
  if (!(what & kSize) && uint64_t{defaults.size} * count > file.size()) {
    return damaged_fragment("has packets larger than the file");
  }
  if (row == 0 && (defaults.size == 0 || !out)) {  // nothing to read, however many there are
    at += uint64_t{defaults.size} * count;
    return out ? last(uint64_t{defaults.duration} * count, *out) : Result<void>{};
  }
  if (at > kMaxTime) return damaged_fragment("starts outside of the file");
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t duration = what & kDuration ? reader.u32() : defaults.duration;
    const uint32_t size = what & kSize ? reader.u32() : defaults.size;
    uint32_t flags = what & kFlags ? reader.u32() : defaults.flags;
    const int32_t delay = what & kDelay ? reader.i32() : 0;
    if (i == 0 && (what & kFirstFlags)) flags = first_flags;
    if (out) {
      const MediaPacket packet{.offset = static_cast<int64_t>(at),
                               .size = size,
                               .key = (flags & (kNoKey | kNeedsOthers)) == 0,
                               .pts = out->end + delay};
      if (Result<void> good = out->add(file, packet, duration); !good) return good;
      if (Result<void> good = last(duration, *out); !good) return good;
    }
    at += size;
  }
  return {};
}

}  // namespace

Mp4DefaultsByTrack read_mp4_fragment_defaults(std::span<const uint8_t> moov) {
  Mp4DefaultsByTrack out;
  Mp4Boxes boxes(mp4_box_in(moov, box_named("mvex")));
  for (Mp4Box box; boxes.next(box);) {
    if (box.type != box_named("trex")) continue;
    BigEndianReader reader(box.content);
    reader.skip(4);
    const uint32_t of = reader.u32();
    const Mp4FragmentDefaults found{.description = reader.u32(),
                                    .duration = reader.u32(),
                                    .size = reader.u32(),
                                    .flags = reader.u32()};
    if (reader.good()) out.insert_or_assign(of, found);
  }
  return out;
}

Result<void> read_mp4_fragment(const ByteRanges& file, std::span<const uint8_t> moof, size_t at,
                               const Mp4DefaultsByTrack& defaults, uint32_t track,
                               Mp4Packets& out) {
  Mp4Boxes boxes(moof);
  uint64_t follows = at;
  for (Mp4Box traf; boxes.next(traf);) {
    if (traf.type != box_named("traf")) continue;
    const Result<FragmentHeader> header = read_header(traf.content, defaults, at, follows);
    if (!header) return header.error();
    const bool wanted = header->track == track;
    if (wanted) {
      const std::span<const uint8_t> tfdt = mp4_box_in(traf.content, box_named("tfdt"));
      if (!tfdt.empty()) {
        BigEndianReader reader(tfdt);
        const uint64_t begin = reader.u32() >> 24 == 1 ? reader.u64() : reader.u32();
        if (!reader.good() || begin > kMaxTime) return damaged_fragment("has no timestamp");
        out.end = static_cast<int64_t>(begin);
      }
    }
    uint64_t next = header->base;
    Mp4Boxes runs(traf.content);
    for (Mp4Box run; runs.next(run);) {
      if (run.type != box_named("trun")) continue;
      if (wanted) {
        if (Result<void> good = out.coded_by(header->defaults.description); !good) return good;
      }
      if (Result<void> good = read_run(file, run.content, *header, next, wanted ? &out : nullptr);
          !good) {
        return good;
      }
    }
    if (runs.broken()) return damaged_fragment("contains no complete box");
    follows = next;
  }
  if (boxes.broken()) return damaged_fragment("contains no complete box");
  return {};
}

}  // namespace headrace
