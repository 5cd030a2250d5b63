// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/mp4_audio_track.h"

#include <algorithm>
#include <utility>

#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/media/mp4_boxes.h"
#include "headrace/codecs/media/mp4_esds.h"
#include "headrace/codecs/media/mp4_sample_table.h"

namespace headrace {
namespace {

using TrackBytes = std::span<const uint8_t>;

uint32_t rate_in(TrackBytes header) {  // offset in mvhd and mdhd, which begin alike
  BigEndianReader reader(header);
  const bool wide = reader.u32() >> 24 == 1;
  reader.skip(wide ? 16 : 8);
  return reader.u32();
}

// The trak whose handler is audio, or none.
TrackBytes audio_trak(TrackBytes moov) {
  Mp4Boxes boxes(moov);
  for (Mp4Box box; boxes.next(box);) {
    if (box.type != box_named("trak")) continue;
    const TrackBytes mdia = mp4_box_in(box.content, box_named("mdia"));
    BigEndianReader hdlr(mp4_box_in(mdia, box_named("hdlr")));
    hdlr.skip(8);
    if (hdlr.u32() == box_named("soun")) return box.content;
  }
  return {};
}

// The sample entry with this number, from 1: how packets are coded.
Result<void> read_audio_entry(TrackBytes stsd, uint32_t number, Mp4AudioTrack& audio) {
  BigEndianReader list(stsd);
  list.skip(8);
  Mp4Boxes entries(list.rest());
  Mp4Box entry;
  for (uint32_t i = 0; i < number; ++i) {
    if (!entries.next(entry)) return corrupt_video(kMp4Name, "its stsd box lacks an entry");
  }
  for (int shift = 24; shift >= 0; shift -= 8) {
    const char c = static_cast<char>(entry.type >> shift);
    audio.codec += c < ' ' || c > '~' ? '?' : c;
  }
  BigEndianReader reader(entry.content);
  reader.skip(8);
  const uint16_t version = reader.u16();
  reader.skip(18);
  // QuickTime's longer forms.
  if (version == 1) reader.skip(16);
  if (version == 2) reader.skip(36);
  if (!reader.good()) return corrupt_video(kMp4Name, "its stsd box is too short");
  TrackBytes esds = mp4_box_in(reader.rest(), box_named("esds"));
  if (esds.empty()) {
    esds = mp4_box_in(mp4_box_in(reader.rest(), box_named("wave")), box_named("esds"));
  }
  const ElementaryStream stream = read_esds(esds);
  audio.object_type = stream.object_type;
  audio.parameters.assign(stream.specific.begin(), stream.specific.end());
  return {};
}

}  // namespace

Result<Mp4AudioTrack> read_mp4_audio_track(const ByteRanges& file) {
  const Result<Mp4TopLevel> top = read_mp4_top_level(file);
  if (!top) return top.error();
  const TrackBytes moov = top->moov;
  const TrackBytes trak = audio_trak(moov);
  if (trak.empty()) return no_video_track(kMp4Name, "has no audio track");
  if (!top->fragments.empty()) {
    return unsupported_video(kMp4Name, "has its audio in fragments",
                             "remux it without fragments: ffmpeg -i in.mp4 -c copy out.mp4");
  }
  const TrackBytes mdia = mp4_box_in(trak, box_named("mdia"));
  const TrackBytes stbl = mp4_box_in(mp4_box_in(mdia, box_named("minf")), box_named("stbl"));
  const uint32_t rate = rate_in(mp4_box_in(mdia, box_named("mdhd")));
  const TrackBytes mvhd = mp4_box_in(moov, box_named("mvhd"));
  if (mvhd.empty()) return corrupt_video(kMp4Name, "its mvhd box is missing");
  // Only the edits' total length is used; like players, treats 0 as 1.
  const uint32_t movie_rate = std::max(rate_in(mvhd), 1u);
  if (rate == 0) return corrupt_video(kMp4Name, "its track has a timescale of 0");
  Mp4AudioTrack audio;
  audio.ticks_per_second = rate;
  Mp4Packets packets;
  if (Result<void> good = read_mp4_sample_table(file, stbl, packets); !good) {
    return std::move(good.error());
  }
  if (Result<void> good = read_audio_entry(mp4_box_in(stbl, box_named("stsd")),
                                           std::max(packets.description, 1u), audio);
      !good) {
    return std::move(good.error());
  }
  const Result<Mp4Edits> edits = read_mp4_edits(
      mp4_box_in(mp4_box_in(trak, box_named("edts")), box_named("elst")), movie_rate, rate);
  if (!edits) return edits.error();
  audio.packets = std::move(packets.packets);
  audio.begin = std::clamp<int64_t>(edits->begin, 0, packets.end);
  audio.end = packets.end;
  audio.start = audio.begin + edits->delay;
  // The list counts in the movie's ticks, often milliseconds: an end within one such tick of the
  // end of all samples is taken as that end.
  const int64_t tick = rate / movie_rate + 1;
  if (edits->end < packets.end - tick) audio.end = std::max(edits->end, audio.begin);
  return audio;
}

}  // namespace headrace
