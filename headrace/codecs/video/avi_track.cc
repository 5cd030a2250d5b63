// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/codecs/image/byte_order.h"
#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/video/avi_headers.h"
#include "headrace/codecs/video/mpeg4_pictures.h"
#include "headrace/codecs/video/track_readers.h"
#include "headrace/codecs/video/video_file.h"

namespace headrace {
namespace {

constexpr uint64_t kRiffHead = 12;
constexpr uint64_t kImageHead = 512;  // most headers before a picture are shorter
constexpr size_t kVopHead = 32;       // more than is needed of the picture's own header

// "01dc": the number of a stream (01) and the type of a chunk (dc, db: a picture).
bool holds_pictures_of(uint32_t name, int stream) {
  const auto letter = [name](int i) { return static_cast<int>(name >> 8 * i & 0xFF); };
  if (letter(0) - '0' != stream / 10 || letter(1) - '0' != stream % 10) return false;
  return letter(2) == 'd' && (letter(3) == 'c' || letter(3) == 'b');
}

class AviPackets {
 public:
  AviPackets(const ByteRanges& file, AviHeaders headers)
      : file_(file),
        stream_(headers.number),
        is_xvid_(headers.is_xvid),
        tick_(headers.first_tick),
        track_(std::move(headers.track)) {
    layer_.learn(track_.parameters);
  }

  // "movi", or a part of it.
  Result<void> read(const AviChunk& list) {
    if (list.end > file_.size()) return truncated(file_.size());
    AviChunks chunks(file_, list.begin, list.end);
    for (AviChunk chunk;;) {
      Result<bool> more = chunks.next(chunk);
      if (!more) return std::move(more.error());
      if (!*more) return {};
      if (chunk.end > list.end) return truncated(chunk.begin);
      if (chunk.list == avi_name("rec ")) {
        chunks.enter(chunk);
      } else if (holds_pictures_of(chunk.name, stream_)) {
        if (Result<void> good = add(chunk); !good) return good;
      }
    }
  }

  Result<VideoTrack> finish() {
    // The file ends before the time slot of the last packet's second picture, which is therefore
    // never shown.
    if (ahead_ > 1)
      return corrupt_video(kAviName, "packs several images without timestamps into a packet");
    if (ahead_ == 1) {
      track_.packets.pop_back();
      --tick_;
    }
    if (track_.codec == VideoCodec::kMPEG4) {
      give_times();
    } else {
      for (uint32_t i = 0; i < track_.packets.size(); ++i) track_.frames.push_back(i);
    }
    if (track_.frames.empty()) return no_video_track(kAviName, "has no packet in its video track");
    track_.duration = tick_;
    return std::move(track_);
  }

 private:
  static Error truncated(uint64_t at) {
    return truncated_video(kAviName,
                           "ends inside the chunk that begins before byte " + std::to_string(at));
  }

  Result<void> add(const AviChunk& chunk) {
    if (chunk.end - chunk.begin > INT32_MAX)
      return corrupt_video(kAviName, "a frame of several gigabytes");
    if (chunk.end == chunk.begin) {  // the previous picture stays
      if (ahead_ > 0) {
        --ahead_;
      } else {
        ++tick_;
      }
      return {};
    }
    if (track_.codec == VideoCodec::kMPEG4) return add_mpeg4(chunk);
    return add_packet(chunk.begin, chunk.end, true);
  }

  Result<void> add_packet(uint64_t begin, uint64_t end, bool key) {
    if (track_.packets.size() == kMaxVideoPackets) return too_many_packets(kAviName);
    track_.packets.push_back({.offset = static_cast<int64_t>(begin),
                              .size = static_cast<uint32_t>(end - begin),
                              .key = key,
                              .pts = tick_++});
    return {};
  }

  Result<void> add_mpeg4(const AviChunk& chunk) {
    const uint64_t size = chunk.end - chunk.begin;
    const bool first = track_.packets.empty();
    Result<std::span<const uint8_t>> bytes =
        file_.at(chunk.begin, layer_.packs_pictures || first ? size : std::min(size, kImageHead));
    if (!bytes) return bytes.error();
    std::optional<Mpeg4Picture> picture = next_mpeg4_picture(*bytes);
    layer_.learn(*bytes);
    // The picture begins further into the packet, or this is the packet that declares packed
    // pictures.
    const bool lacks = !picture || picture->header.size() < kVopHead || layer_.packs_pictures;
    if (lacks && bytes->size() < size) {
      bytes = file_.at(chunk.begin, size);
      if (!bytes) return bytes.error();
      picture = next_mpeg4_picture(*bytes);
      layer_.learn(*bytes);
    }
    if (first) {
      if (!picture || picture->kind != Mpeg4Kind::kIntra) {
        return corrupt_video(kAviName, "does not begin with a key frame");
      }
      if (track_.parameters.empty()) {
        const std::span<const uint8_t> parameters = mpeg4_parameters(*bytes);
        track_.parameters.assign(parameters.begin(), parameters.end());
      }
      // Decoders that know the file's codec name assume Xvid; ours does not get the name, so it is
      // added to the parameters.
      if (is_xvid_ && !layer_.names_encoder) {
        constexpr std::string_view kXvid("\0\0\1\xB2XviD0000", 12);
        track_.parameters.insert(track_.parameters.end(), kXvid.begin(), kXvid.end());
      }
    }
    if (!picture) {
      return corrupt_video(kAviName,
                           "the packet has no image: byte " + std::to_string(chunk.begin));
    }
    // A placeholder for the second of two pictures that came in one packet.
    if (ahead_ > 0 && layer_.is_empty(*picture)) {
      --ahead_;
      return {};
    }
    uint64_t begin = chunk.begin;
    while (picture) {
      std::optional<Mpeg4Picture> next;
      if (layer_.packs_pictures) next = next_mpeg4_picture(*bytes, picture->at + 4);
      const uint64_t end = next ? chunk.begin + next->at : chunk.end;
      kinds_.push_back(picture->kind);
      shown_.push_back(!layer_.is_empty(*picture));
      Result<void> good = add_packet(begin, end, picture->kind == Mpeg4Kind::kIntra);
      if (!good) return good;
      if (next) ++ahead_;
      begin = end;
      picture = next;
    }
    return {};
  }

  // If there are B pictures, they are shown a tick before they are decoded, and the others when the
  // next non-B picture is decoded.
  void give_times() {
    std::vector<MediaPacket>& packets = track_.packets;
    const bool reordered = std::ranges::count(kinds_, Mpeg4Kind::kBetween) > 0;
    int64_t next_other = tick_;
    int others = 0;
    std::vector<bool> lacks(packets.size());  // lacks a reference picture before it
    for (size_t i = 0; i < packets.size(); ++i) {
      if (kinds_[i] != Mpeg4Kind::kBetween) ++others;
      lacks[i] = kinds_[i] == Mpeg4Kind::kBetween && others < 2;
    }
    for (size_t i = packets.size(); reordered && i-- > 0;) {
      if (kinds_[i] == Mpeg4Kind::kBetween) {
        --packets[i].pts;
      } else {
        std::swap(packets[i].pts, next_other);
        --packets[i].pts;
      }
    }
    for (uint32_t i = 0; i < packets.size(); ++i) {
      if (shown_[i] && !lacks[i]) track_.frames.push_back(i);
    }
    std::ranges::stable_sort(track_.frames, {}, [&](uint32_t i) { return packets[i].pts; });
  }

  const ByteRanges& file_;
  const int stream_;
  const bool is_xvid_;
  int64_t tick_;
  VideoTrack track_;
  Mpeg4Layer layer_;
  std::vector<Mpeg4Kind> kinds_;  // by packet, for MPEG-4
  std::vector<bool> shown_;       // the same
  uint64_t ahead_ = 0;            // pictures that came before a packet of their own
};

}  // namespace

bool begins_like_avi(std::span<const uint8_t> bytes) {
  return bytes.size() >= kRiffHead && little_u32(bytes, 0) == avi_name("RIFF") &&
         little_u32(bytes, 8) == avi_name("AVI ");
}

Result<VideoTrack> read_avi_track(const ByteRanges& file) {
  std::optional<AviPackets> packets;
  AviChunks parts(file, 0, file.size());
  for (AviChunk part;;) {
    Result<bool> more = parts.next(part);
    if (!more) return std::move(more.error());
    if (!*more) break;
    const bool is_part = part.list == avi_name("AVI ") || part.list == avi_name("AVIX");
    if (part.name != avi_name("RIFF") || !is_part) continue;
    // Clamped to the file: damage is found from the inner lists.
    AviChunks chunks(file, part.begin, std::min(part.end, file.size()));
    bool has_packets = false;
    for (AviChunk chunk;;) {
      more = chunks.next(chunk);
      if (!more) return std::move(more.error());
      if (!*more) break;
      if (chunk.list == avi_name("hdrl") && !packets) {
        Result<AviHeaders> headers = read_avi_headers(file, chunk);
        if (!headers) return std::move(headers.error());
        packets.emplace(file, std::move(*headers));
      } else if (chunk.list == avi_name("movi")) {
        if (!packets) return corrupt_video(kAviName, "its packets come before its headers");
        if (Result<void> good = packets->read(chunk); !good) return std::move(good.error());
        has_packets = true;
      }
    }
    if (!has_packets && part.end > file.size()) {
      return truncated_video(kAviName, "ends before the packets of the part that begins at byte " +
                                           std::to_string(part.begin - kRiffHead));
    }
  }
  if (!packets) return truncated_video(kAviName, "ends before its headers");
  return packets->finish();
}

namespace {

const VideoContainer kAvi{
    .name = "avi",
    .doc = "AVI, including large files (OpenDML): MPEG-4 (DivX, Xvid), MJPEG.",
    .suffixes = {".avi"},
    .sniff = begins_like_avi,
    .read = read_avi_track};
const Register<VideoContainer> registered_avi(kAvi);

}  // namespace
}  // namespace headrace
