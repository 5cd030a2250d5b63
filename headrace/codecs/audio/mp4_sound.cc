// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/mp4_sound.h"

#include <algorithm>
#include <utility>

#include "headrace/codecs/media/container_errors.h"
#include "headrace/codecs/media/mp4_boxes.h"
#include "headrace/codecs/media/mp4_esds.h"
#include "headrace/codecs/media/mp4_sample_table.h"

namespace headrace {
namespace {

using SoundBytes = std::span<const uint8_t>;

uint32_t rate_in(SoundBytes header) {  // offset in mvhd and mdhd, which begin alike
  BigEndianReader reader(header);
  const bool wide = reader.u32() >> 24 == 1;
  reader.skip(wide ? 16 : 8);
  return reader.u32();
}

// The trak whose handler is audio, or none.
SoundBytes sound_trak(SoundBytes moov) {
  Mp4Boxes boxes(moov);
  for (Mp4Box box; boxes.next(box);) {
    if (box.type != box_named("trak")) continue;
    const SoundBytes mdia = mp4_box_in(box.content, box_named("mdia"));
    BigEndianReader hdlr(mp4_box_in(mdia, box_named("hdlr")));
    hdlr.skip(8);
    if (hdlr.u32() == box_named("soun")) return box.content;
  }
  return {};
}

// The sample entry with this number, from 1: how packets are coded.
Result<void> read_sound_entry(SoundBytes stsd, uint32_t number, Mp4Sound& sound) {
  BigEndianReader list(stsd);
  list.skip(8);
  Mp4Boxes entries(list.rest());
  Mp4Box entry;
  for (uint32_t i = 0; i < number; ++i) {
    if (!entries.next(entry)) return corrupt_video(kMp4Name, "its stsd box lacks an entry");
  }
  for (int shift = 24; shift >= 0; shift -= 8) {
    const char c = static_cast<char>(entry.type >> shift);
    sound.codec += c < ' ' || c > '~' ? '?' : c;
  }
  BigEndianReader reader(entry.content);
  reader.skip(8);
  const uint16_t version = reader.u16();
  reader.skip(18);
  // QuickTime's longer forms.
  if (version == 1) reader.skip(16);
  if (version == 2) reader.skip(36);
  if (!reader.good()) return corrupt_video(kMp4Name, "its stsd box is too short");
  SoundBytes esds = mp4_box_in(reader.rest(), box_named("esds"));
  if (esds.empty()) {
    esds = mp4_box_in(mp4_box_in(reader.rest(), box_named("wave")), box_named("esds"));
  }
  const ElementaryStream stream = read_esds(esds);
  sound.object_type = stream.object_type;
  sound.parameters.assign(stream.specific.begin(), stream.specific.end());
  return {};
}

}  // namespace

Result<Mp4Sound> read_mp4_sound(const ByteRanges& file) {
  const Result<Mp4TopLevel> top = read_mp4_top_level(file);
  if (!top) return top.error();
  const SoundBytes moov = top->moov;
  const SoundBytes trak = sound_trak(moov);
  if (trak.empty()) return no_pictures(kMp4Name, "has no audio track");
  if (!top->fragments.empty()) {
    return unread_video(kMp4Name, "has its audio in fragments",
                        "remux it without fragments: ffmpeg -i in.mp4 -c copy out.mp4");
  }
  const SoundBytes mdia = mp4_box_in(trak, box_named("mdia"));
  const SoundBytes stbl = mp4_box_in(mp4_box_in(mdia, box_named("minf")), box_named("stbl"));
  const uint32_t rate = rate_in(mp4_box_in(mdia, box_named("mdhd")));
  const SoundBytes mvhd = mp4_box_in(moov, box_named("mvhd"));
  if (mvhd.empty()) return corrupt_video(kMp4Name, "its mvhd box is missing");
  // Only the edits' total length is used; like players, treats 0 as 1.
  const uint32_t movie_rate = std::max(rate_in(mvhd), 1u);
  if (rate == 0) return corrupt_video(kMp4Name, "its track has a timescale of 0");
  Mp4Sound sound;
  sound.ticks_per_second = rate;
  Mp4Packets packets;
  if (Result<void> good = read_mp4_sample_table(file, stbl, packets); !good) {
    return std::move(good.error());
  }
  if (Result<void> good = read_sound_entry(mp4_box_in(stbl, box_named("stsd")),
                                           std::max(packets.description, 1u), sound);
      !good) {
    return std::move(good.error());
  }
  const Result<Mp4Edits> edits = read_mp4_edits(
      mp4_box_in(mp4_box_in(trak, box_named("edts")), box_named("elst")), movie_rate, rate);
  if (!edits) return edits.error();
  sound.packets = std::move(packets.packets);
  sound.begin = std::clamp<int64_t>(edits->begin, 0, packets.end);
  sound.end = packets.end;
  sound.start = sound.begin + edits->delay;
  // The list counts in the movie's ticks, often milliseconds: an end within one such tick of the
  // end of all samples is taken as that end.
  const int64_t tick = rate / movie_rate + 1;
  if (edits->end < packets.end - tick) sound.end = std::max(edits->end, sound.begin);
  return sound;
}

}  // namespace headrace
