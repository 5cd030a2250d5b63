// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/mkv_audio_track.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/media/ebml.h"
#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/media/mkv_elements.h"
#include "headrace/codecs/media/mkv_ids.h"

namespace headrace {
namespace {

using TrackBytes = std::span<const uint8_t>;

constexpr uint64_t kMaxAudioTime = uint64_t{1} << 50;  // ticks, nanoseconds

Error corrupt_mkv(std::string what) { return corrupt_audio(kMkvName, std::move(what)); }
Error unsupported_mkv(std::string what) {
  return unsupported_audio(kMkvName, std::move(what), "remux it: ffmpeg -i in.mkv -c copy out.mkv");
}

// What is known of a track when choosing one, and of the chosen one.
struct MkvTrackEntry {
  uint64_t number = 0, type = 0;
  bool enabled = true, encoded = false;
  MkvAudioTrack audio;
};

bool read_track_entry(TrackBytes content, MkvTrackEntry& out) {
  EbmlElements elements(content);
  out.audio.sample_rate = 8000;  // the specification's default
  out.audio.channels = 1;
  for (EbmlElement element; elements.next(element);) {
    const uint64_t number = element.number();
    if (element.id == mkv::kTrackNumber) out.number = number;
    if (element.id == mkv::kTrackType) out.type = number;
    if (element.id == mkv::kFlagEnabled) out.enabled = number != 0;
    if (element.id == mkv::kContentEncodings) out.encoded = true;
    if (element.id == mkv::kCodecPrivate) {
      out.audio.parameters.assign(element.content.begin(), element.content.end());
    }
    if (element.id == mkv::kCodecDelay) {
      out.audio.delay_ns = static_cast<int64_t>(std::min(number, kMaxAudioTime));
    }
    if (element.id == mkv::kCodecId) {
      out.audio.codec.assign(element.content.begin(), element.content.end());
      out.audio.codec.resize(std::min(out.audio.codec.size(), out.audio.codec.find('\0')));
    }
    if (element.id != mkv::kAudio) continue;
    EbmlElements about(element.content);
    for (EbmlElement each; about.next(each);) {
      const auto value = static_cast<int64_t>(std::min<uint64_t>(each.number(), 1 << 20));
      if (each.id == mkv::kSamplingFrequency) out.audio.sample_rate = each.real();
      if (each.id == mkv::kChannels) out.audio.channels = value;
      if (each.id == mkv::kBitDepth) out.audio.bits = value;
    }
    if (about.broken()) return false;
  }
  return !elements.broken();
}

Result<MkvTrackEntry> choose_audio_track(TrackBytes tracks) {
  constexpr uint64_t kAudioTrack = 2;
  std::optional<MkvTrackEntry> chosen;
  EbmlElements elements(tracks);
  bool whole = true;
  for (EbmlElement element; elements.next(element);) {
    if (element.id != mkv::kTrack) continue;
    MkvTrackEntry track;
    whole = read_track_entry(element.content, track) && whole;
    if (track.type == kAudioTrack && (!chosen || (!chosen->enabled && track.enabled)))
      chosen = track;
  }
  if (!whole || elements.broken()) return corrupt_mkv("its list of tracks is damaged");
  if (!chosen) return no_audio_track(kMkvName);
  if (chosen->encoded) return unsupported_mkv("has encrypted or doubly compressed audio");
  return std::move(*chosen);
}

class AudioBlocks {
 public:
  AudioBlocks(const ByteRanges& file, MkvTrackEntry& track) : file_(file), track_(track) {}

  void begin_cluster() { cluster_ = 0; }
  void set_time(uint64_t ticks) { cluster_ = ticks; }

  Result<void> add(const MkvElement& block, int64_t discards_ns = 0) {
    const Result<TrackBytes> head =
        file_.at(block.body, std::min<uint64_t>(block.size, MkvElement::kFirst));
    if (!head) return head.error();
    const std::optional<EbmlNumber> number = ebml_number(*head, 8);
    if (!number) return corrupt_mkv("a block has no track");
    if (number->value != track_.number) return {};
    BigEndianReader reader(*head);
    reader.skip(static_cast<uint64_t>(number->bytes));
    const auto time = static_cast<int16_t>(reader.u16());
    const uint8_t flags = reader.u8();
    if (!reader.good()) return corrupt_mkv("a block has no header");
    if (cluster_ > kMaxAudioTime) return corrupt_mkv("its timestamps are out of range");
    const int64_t ticks = static_cast<int64_t>(cluster_) + time;
    MkvAudioTrack& audio = track_.audio;
    // Only the last block may discard samples at its end.
    if (audio.discards_ns != 0) return unsupported_mkv("discards samples in the middle");
    if (discards_ns < 0) return unsupported_mkv("discards samples at the start of a block");
    audio.discards_ns = discards_ns;
    const size_t before = audio.packets.size();
    const uint64_t taken = head->size() - reader.rest().size();
    Result<void> added = add_packets(block, taken, flags >> 1 & 3, ticks);
    if (audio.packets.size() > before) audio.in_last = audio.packets.size() - before;
    return added;
  }

  Result<void> add_group(const MkvElement& group) {
    std::optional<MkvElement> block;
    int64_t discards = 0;
    MkvElements elements(file_, group.body, group.body + group.size);
    for (MkvElement element; elements.next(element);) {
      if (element.id == mkv::kBlock) block = element;
      if (element.id == mkv::kDiscardPadding) discards = signed_number(element);
    }
    if (!elements.read()) return std::move(elements.read().error());
    if (elements.broken()) return corrupt_mkv("a group of blocks is damaged");
    return block ? add(*block, discards) : Result<void>{};
  }

 private:
  // Adds the packets of a block, which follow a header of this many bytes.
  Result<void> add_packets(const MkvElement& block, uint64_t head, int lacing, int64_t ticks) {
    if (lacing == 0) return add_frame(block.body + head, block.size - head, ticks);
    const Result<TrackBytes> whole = file_.at(block.body, block.size);
    if (!whole) return whole.error();
    return add_frames(whole->subspan(static_cast<size_t>(head)), block.body + head, lacing, ticks);
  }

  static int64_t signed_number(const MkvElement& element) {
    const int shift = 64 - 8 * static_cast<int>(std::min<uint64_t>(element.size, 8));
    if (shift == 64) return 0;
    return static_cast<int64_t>(element.number() << shift) >> shift;
  }

  // A block may hold several frames, preceded by their sizes (RFC 9559, 10.3): Xiph lacing, fixed
  // sizes, or differences. `block`: the content after its header, at this position of the file.
  Result<void> add_frames(TrackBytes block, uint64_t place, int lacing, int64_t ticks) {
    constexpr int kXiph = 1, kEqual = 2;
    BigEndianReader reader(block);
    const size_t count = size_t{reader.u8()} + 1;
    std::array<uint64_t, 256> sizes{};
    uint64_t all = 0;
    for (size_t i = 0; i + 1 < count && lacing != kEqual; ++i) {
      if (lacing == kXiph) {
        uint8_t more = 255;
        while (more == 255 && reader.good()) sizes[i] += more = reader.u8();
      } else {
        const std::optional<EbmlNumber> number = ebml_number(reader.rest(), 8);
        if (!number) return corrupt_mkv("the sizes of frames in a block are damaged");
        reader.skip(static_cast<uint64_t>(number->bytes));
        const uint64_t zero = (uint64_t{1} << (7 * number->bytes - 1)) - 1;
        sizes[i] = i == 0 ? number->value : sizes[i - 1] + number->value - zero;
      }
      if (sizes[i] > file_.size()) return corrupt_mkv("the sizes of frames in a block are damaged");
      all += sizes[i];
    }
    const size_t left = reader.rest().size();
    if (!reader.good() || all > left || (lacing == kEqual && left % count != 0)) {
      return corrupt_mkv("the frames of a block extend beyond it");
    }
    sizes[count - 1] = left - all;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t size = lacing == kEqual ? left / count : sizes[i];
      const uint64_t at = place + (block.size() - reader.rest().size());
      reader.skip(size);
      if (Result<void> good = add_frame(at, size, ticks); !good) return good;
    }
    return {};
  }

  Result<void> add_frame(uint64_t at, uint64_t size, int64_t ticks) {
    MkvAudioTrack& audio = track_.audio;
    if (size == 0) return {};
    if (size > INT32_MAX) return corrupt_mkv("a frame of several gigabytes");
    if (audio.packets.size() == kMaxVideoPackets) return unsupported_mkv("has too many packets");
    audio.packets.push_back({.offset = static_cast<int64_t>(at),
                             .size = static_cast<uint32_t>(size),
                             .key = true,
                             .pts = ticks});
    return {};
  }

  const ByteRanges& file_;
  MkvTrackEntry& track_;
  uint64_t cluster_ = 0;
};

}  // namespace

// Elements in clusters are found by their ids, so clusters need not state their length; all other
// elements must, as in video files.
Result<MkvAudioTrack> read_mkv_audio_track(const ByteRanges& file) {
  uint64_t scale = 1000000;
  std::optional<MkvTrackEntry> track;
  std::optional<AudioBlocks> blocks;
  bool in_segment = false;
  uint64_t end = file.size();
  Buffer memory;  // of one element at a time
  MkvElements elements(file, 0, file.size());
  MkvElement element;
  while (elements.next(element)) {
    if (in_segment && element.at >= end) break;
    Result<void> good;
    if (element.unknown_size && element.id != mkv::kCluster && element.id != mkv::kSegment) {
      return corrupt_mkv("unknown size of the element at byte " + std::to_string(element.at) +
                         " is");
    }
    switch (element.id) {
      case mkv::kSegment:
        if (in_segment) return unsupported_mkv("is several concatenated files");
        in_segment = true;
        end = element.body + element.size;
        elements.enter(element);
        break;
      case mkv::kInfo: {
        const Result<TrackBytes> info = file.keep(element.body, element.size, memory);
        if (!info) return info.error();
        EbmlElements about(*info);
        for (EbmlElement each; about.next(each);) {
          if (each.id == mkv::kTimestampScale) scale = each.number();
        }
        break;
      }
      case mkv::kTracks: {
        if (track) break;
        const Result<TrackBytes> tracks = file.keep(element.body, element.size, memory);
        if (!tracks) return tracks.error();
        Result<MkvTrackEntry> chosen = choose_audio_track(*tracks);
        if (!chosen) return std::move(chosen.error());
        track = std::move(*chosen);
        blocks.emplace(file, *track);
        break;
      }
      case mkv::kCluster:
        if (!blocks) return unsupported_mkv("its packets come before its list of tracks");
        blocks->begin_cluster();
        elements.enter(element);
        break;
      case mkv::kTimestamp:
        if (blocks) blocks->set_time(element.number());
        break;
      case mkv::kSimpleBlock:
        if (blocks) good = blocks->add(element);
        break;
      case mkv::kBlockGroup:
        if (blocks) good = blocks->add_group(element);
        break;
      default:
        break;
    }
    if (!good) return std::move(good.error());
  }
  if (!elements.read()) return std::move(elements.read().error());
  if (elements.truncated()) {
    return truncated_audio(kMkvName,
                           "ends inside the element at byte " + std::to_string(element.at));
  }
  if (elements.broken()) {
    return corrupt_mkv("no valid element at byte " + std::to_string(element.at));
  }
  if (!track) return truncated_audio(kMkvName, "ends before its list of tracks");
  if (scale == 0 || scale > 1000000000000) return corrupt_mkv("its time base is missing");
  MkvAudioTrack& audio = track->audio;
  audio.tick = static_cast<double>(scale) * 1e-9;
  if (!audio.packets.empty()) {
    audio.start = static_cast<double>(audio.packets.front().pts) * audio.tick;
    audio.last = static_cast<double>(audio.packets.back().pts) * audio.tick;
  }
  return std::move(audio);
}

}  // namespace headrace
