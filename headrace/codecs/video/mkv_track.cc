// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/media/mkv_elements.h"
#include "headrace/codecs/media/mkv_ids.h"
#include "headrace/codecs/video/frame_order.h"
#include "headrace/codecs/video/mkv_headers.h"
#include "headrace/codecs/video/track_readers.h"
#include "headrace/codecs/video/video_file.h"

namespace headrace {
namespace {

constexpr uint64_t kMaxMkvTicks = uint64_t{1} << 60;

class MkvBlocks {
 public:
  MkvBlocks(const ByteRanges& file, MkvHeaders& headers)
      : file_(file), headers_(headers), track_(headers.track) {}

  // Clusters are entered instead of skipped, so it does not matter whether they state their size:
  // children are recognized by id. Nothing else may have an unknown size (RFC 9559, 4.5), because
  // it would contain all clusters after it.
  Result<void> read() {
    MkvElements elements(file_, headers_.clusters, headers_.segment_end);
    MkvElement element;
    while (elements.next(element)) {
      Result<void> good;
      if (element.unknown_size && element.id != mkv::kCluster && element.id != mkv::kSegment) {
        return corrupt_video(
            kMkvName, "unknown size of the element at byte " + std::to_string(element.at) + " is");
      }
      switch (element.id) {
        case mkv::kCluster:
          cluster_ = 0;
          elements.enter(element);
          break;
        case mkv::kTimestamp:
          cluster_ = element.number();
          break;
        case mkv::kSimpleBlock:
          good = add(element, {});
          break;
        case mkv::kBlockGroup:
          good = add_group(element);
          break;
        case mkv::kEncryptedBlock:
          return unsupported_video(kMkvName, "is encrypted", "decrypt it first");
        case mkv::kSegment:
        case mkv::kHeader:
          return several();
        default:
          break;
      }
      if (!good) return good;
    }
    if (!elements.read()) return std::move(elements.read().error());
    if (elements.truncated()) {
      return truncated_video(kMkvName,
                             "ends inside the element at byte " + std::to_string(element.at));
    }
    if (elements.broken()) {
      return corrupt_video(kMkvName, "no valid element at byte " + std::to_string(element.at));
    }
    const Result<std::span<const uint8_t>> behind = file_.at(headers_.segment_end, 4);
    if (!behind) return behind.error();
    if (begins_like_mkv(*behind)) return several();
    return {};
  }

  // Duration of the last frame shown; 0 if unknown.
  int64_t last_duration() const { return last_duration_; }

 private:
  struct Group {
    bool key = false;
    std::optional<uint64_t> duration;
  };

  static Error several() {
    return unsupported_video(kMkvName, "is several concatenated files", kRemux);
  }

  Result<void> add_group(const MkvElement& group) {
    Group says;
    says.key = true;
    std::optional<MkvElement> block;
    std::array<uint8_t, MkvElement::kFirst> first;  // first bytes of the block
    MkvElements elements(file_, group.body, group.body + group.size);
    for (MkvElement element; elements.next(element);) {
      if (element.id == mkv::kBlock) {
        block = element;
        std::ranges::copy(element.first, first.begin());
        block->first = std::span(first).first(element.first.size());
      }
      if (element.id == mkv::kReferenceBlock) says.key = false;
      if (element.id == mkv::kBlockDuration) says.duration = element.number();
    }
    if (!elements.read()) return std::move(elements.read().error());
    if (elements.broken()) return corrupt_video(kMkvName, "a group of blocks is damaged");
    return block ? add(*block, says) : Result<void>{};
  }

  Result<void> add(const MkvElement& block, const std::optional<Group>& group) {
    constexpr uint8_t kKey = 0x80, kLacing = 0x06;
    const std::optional<EbmlNumber> number = ebml_number(block.first, 8);
    if (!number) return corrupt_video(kMkvName, "a block has no track");
    if (number->value != headers_.number) return {};
    BigEndianReader reader(block.first);
    reader.skip(static_cast<uint64_t>(number->bytes));
    const auto time = static_cast<int16_t>(reader.u16());
    const uint8_t flags = reader.u8();
    if (!reader.good()) return corrupt_video(kMkvName, "a block has no header");
    if (flags & kLacing)
      return unsupported_video(kMkvName, "has several frames in a block", kRemux);
    if (cluster_ > kMaxMkvTicks) return corrupt_video(kMkvName, "its timestamps are out of range");
    const uint64_t head = block.first.size() - reader.rest().size(), bytes = block.size - head;
    if (bytes == 0) return {};
    if (bytes > INT32_MAX) return corrupt_video(kMkvName, "a frame of several gigabytes");
    if (track_.packets.size() == kMaxVideoPackets) return too_many_packets(kMkvName);
    const int64_t pts = static_cast<int64_t>(cluster_) + time - headers_.delay;
    track_.packets.push_back({.offset = static_cast<int64_t>(block.body + head),
                              .size = static_cast<uint32_t>(bytes),
                              .key = group ? group->key : (flags & kKey) != 0,
                              .pts = pts});
    if (pts >= last_) {
      last_ = pts;
      const uint64_t said = group ? group->duration.value_or(0) : 0;
      last_duration_ =
          said ? static_cast<int64_t>(std::min(said, kMaxMkvTicks)) : headers_.duration;
    }
    return {};
  }

  const ByteRanges& file_;
  MkvHeaders& headers_;
  VideoTrack& track_;
  uint64_t cluster_ = 0;
  int64_t last_ = INT64_MIN, last_duration_ = 0;
};

}  // namespace

Result<VideoTrack> read_mkv_track(const ByteRanges& file) {
  Result<MkvHeaders> headers = read_mkv_headers(file);
  if (!headers) return std::move(headers.error());
  VideoTrack& track = headers->track;
  int64_t last_duration = 0;
  if (headers->clusters > 0) {
    MkvBlocks blocks(file, *headers);
    if (Result<void> good = blocks.read(); !good) return std::move(good.error());
    last_duration = blocks.last_duration();
  }
  if (Result<void> good = order_frames(file, INT64_MIN, INT64_MAX, track); !good) {
    return std::move(good.error());
  }
  if (track.frames.empty()) return no_video_track(kMkvName, "has no packet in its video track");
  const auto pts = [&](size_t from_end) {
    return track.packets[track.frames[track.frames.size() - from_end]].pts;
  };
  if (last_duration == 0 && track.frames.size() > 1) last_duration = pts(1) - pts(2);
  track.duration = pts(1) + last_duration;
  return std::move(track);
}

namespace {

const VideoContainer kMkv{.name = "mkv",
                          .doc = "Matroska and WebM: H.264, HEVC, VP8, VP9, AV1, MPEG-4, MJPEG.",
                          .suffixes = {".mkv", ".webm"},
                          .sniff = begins_like_mkv,
                          .read = read_mkv_track,
                          .rewrites_audio = true};
const Register<VideoContainer> registered_mkv(kMkv);

}  // namespace
}  // namespace headrace
