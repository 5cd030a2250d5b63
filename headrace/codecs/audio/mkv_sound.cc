// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/mkv_sound.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "headrace/codecs/audio/sound_errors.h"
#include "headrace/codecs/media/container_errors.h"
#include "headrace/codecs/media/ebml.h"
#include "headrace/codecs/media/mkv_elements.h"
#include "headrace/codecs/media/mkv_ids.h"

namespace headrace {
namespace {

using SoundBytes = std::span<const uint8_t>;

constexpr uint64_t kMostSoundTime = uint64_t{1} << 50;  // ticks, nanoseconds

Error corrupt_mkv(std::string what) { return corrupt_sound(kMkvName, std::move(what)); }
Error unread_mkv(std::string what) {
  return unread_sound(kMkvName, std::move(what), "remux it: ffmpeg -i in.mkv -c copy out.mkv");
}

// What is known of a track when choosing one, and of the chosen one.
struct SoundTrack {
  uint64_t number = 0, type = 0;
  bool enabled = true, encoded = false;
  MkvSound sound;
};

bool read_sound_track(SoundBytes content, SoundTrack& out) {
  EbmlElements elements(content);
  out.sound.sample_rate = 8000;  // the specification's default
  out.sound.channels = 1;
  for (EbmlElement element; elements.next(element);) {
    const uint64_t number = element.number();
    if (element.id == mkv::kTrackNumber) out.number = number;
    if (element.id == mkv::kTrackType) out.type = number;
    if (element.id == mkv::kFlagEnabled) out.enabled = number != 0;
    if (element.id == mkv::kContentEncodings) out.encoded = true;
    if (element.id == mkv::kCodecPrivate) {
      out.sound.parameters.assign(element.content.begin(), element.content.end());
    }
    if (element.id == mkv::kCodecDelay) {
      out.sound.delay_ns = static_cast<int64_t>(std::min(number, kMostSoundTime));
    }
    if (element.id == mkv::kCodecId) {
      out.sound.codec.assign(element.content.begin(), element.content.end());
      out.sound.codec.resize(std::min(out.sound.codec.size(), out.sound.codec.find('\0')));
    }
    if (element.id != mkv::kAudio) continue;
    EbmlElements about(element.content);
    for (EbmlElement each; about.next(each);) {
      const auto value = static_cast<int64_t>(std::min<uint64_t>(each.number(), 1 << 20));
      if (each.id == mkv::kSamplingFrequency) out.sound.sample_rate = each.real();
      if (each.id == mkv::kChannels) out.sound.channels = value;
      if (each.id == mkv::kBitDepth) out.sound.bits = value;
    }
    if (about.broken()) return false;
  }
  return !elements.broken();
}

Result<SoundTrack> choose_sound(SoundBytes tracks) {
  constexpr uint64_t kSound = 2;
  std::optional<SoundTrack> chosen;
  EbmlElements elements(tracks);
  bool whole = true;
  for (EbmlElement element; elements.next(element);) {
    if (element.id != mkv::kTrack) continue;
    SoundTrack track;
    whole = read_sound_track(element.content, track) && whole;
    if (track.type == kSound && (!chosen || (!chosen->enabled && track.enabled))) chosen = track;
  }
  if (!whole || elements.broken()) return corrupt_mkv("its list of tracks is damaged");
  if (!chosen) return no_track_of_sound(kMkvName);
  if (chosen->encoded)
    return unread_mkv("has audio that is encrypted, or compressed a second time");
  return std::move(*chosen);
}

class SoundBlocks {
 public:
  SoundBlocks(const ByteRanges& file, SoundTrack& track) : file_(file), track_(track) {}

  void begin_cluster() { cluster_ = 0; }
  void set_time(uint64_t ticks) { cluster_ = ticks; }

  Result<void> add(const MkvElement& block, int64_t discards_ns = 0) {
    const Result<SoundBytes> head =
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
    if (cluster_ > kMostSoundTime) return corrupt_mkv("its timestamps are out of range");
    const int64_t ticks = static_cast<int64_t>(cluster_) + time;
    MkvSound& sound = track_.sound;
    // Only the last block may discard samples at its end.
    if (sound.discards_ns != 0) return unread_mkv("discards samples in the middle");
    if (discards_ns < 0) return unread_mkv("discards samples at the start of a block");
    sound.discards_ns = discards_ns;
    const size_t before = sound.packets.size();
    const uint64_t taken = head->size() - reader.rest().size();
    Result<void> added = add_packets(block, taken, flags >> 1 & 3, ticks);
    if (sound.packets.size() > before) sound.in_last = sound.packets.size() - before;
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
    const Result<SoundBytes> whole = file_.at(block.body, block.size);
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
  Result<void> add_frames(SoundBytes block, uint64_t place, int lacing, int64_t ticks) {
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
    MkvSound& sound = track_.sound;
    if (size == 0) return {};
    if (size > INT32_MAX) return corrupt_mkv("a frame of gigabytes");
    if (sound.packets.size() == kMostVideoPackets) return unread_mkv("has too many packets");
    sound.packets.push_back({.offset = static_cast<int64_t>(at),
                             .size = static_cast<uint32_t>(size),
                             .key = true,
                             .pts = ticks});
    return {};
  }

  const ByteRanges& file_;
  SoundTrack& track_;
  uint64_t cluster_ = 0;
};

}  // namespace

// Elements in clusters are found by their ids, so clusters need not state their length; all other
// elements must, as in video files.
Result<MkvSound> read_mkv_sound(const ByteRanges& file) {
  uint64_t scale = 1000000;
  std::optional<SoundTrack> track;
  std::optional<SoundBlocks> blocks;
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
        if (in_segment) return unread_mkv("is several concatenated files");
        in_segment = true;
        end = element.body + element.size;
        elements.enter(element);
        break;
      case mkv::kInfo: {
        const Result<SoundBytes> info = file.keep(element.body, element.size, memory);
        if (!info) return info.error();
        EbmlElements about(*info);
        for (EbmlElement each; about.next(each);) {
          if (each.id == mkv::kTimestampScale) scale = each.number();
        }
        break;
      }
      case mkv::kTracks: {
        if (track) break;
        const Result<SoundBytes> tracks = file.keep(element.body, element.size, memory);
        if (!tracks) return tracks.error();
        Result<SoundTrack> chosen = choose_sound(*tracks);
        if (!chosen) return std::move(chosen.error());
        track = std::move(*chosen);
        blocks.emplace(file, *track);
        break;
      }
      case mkv::kCluster:
        if (!blocks) return unread_mkv("its packets come before its list of tracks");
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
  MkvSound& sound = track->sound;
  sound.tick = static_cast<double>(scale) * 1e-9;
  if (!sound.packets.empty()) {
    sound.start = static_cast<double>(sound.packets.front().pts) * sound.tick;
    sound.last = static_cast<double>(sound.packets.back().pts) * sound.tick;
  }
  return std::move(sound);
}

}  // namespace headrace
