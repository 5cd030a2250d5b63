// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/video_index.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>

#include "headrace/base/byte_stream.h"
#include "headrace/codecs/media/media_errors.h"

namespace headrace {
namespace {

constexpr std::string_view kIndexMagic = "HRVIDEO1";
constexpr size_t kHashBytes = 8;
// Limit for times, so that sums cannot overflow.
constexpr int64_t kMaxIndexTime = int64_t{1} << 61;

const ErrorCode kBadVideoIndex{
    "HR0366", ErrorKind::kData, "video index does not match",
    "The stored index of a video's packets is damaged, or belongs to another version or another "
    "file. It is rebuilt from the file: delete the cache that contains it, or index the pack "
    "again."};

Error bad_index(std::string what) {
  return {.code = &kBadVideoIndex,
          .what = std::move(what),
          .hint = "delete the index; it is rebuilt from the file"};
}

// Zigzag encoding: small numbers of either sign become small unsigned ones.
uint64_t folded(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
int64_t unfolded(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// One byte with the size of each value, then all of them.
void write_column(ByteWriter& out, std::span<const uint64_t> values) {
  const uint64_t all = std::accumulate(values.begin(), values.end(), uint64_t{0}, std::bit_or<>());
  const uint8_t width = all >> 32 ? 8 : all >> 16 ? 4 : all >> 8 ? 2 : all ? 1 : 0;
  out.number(width);
  for (const uint64_t value : values) {
    for (int i = 0; i < width; ++i) out.out.push_back(static_cast<uint8_t>(value >> 8 * i));
  }
}

template <class Number, class Take>
bool take_all(std::span<const uint8_t> bytes, size_t count, const Take& take) {
  for (size_t i = 0; i < count; ++i) {
    Number value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    if (!take(i, uint64_t{value})) return false;
  }
  return true;
}

// Calls take(i, value) for each of `count` values, until it returns false.
template <class Take>
bool read_column(ByteReader& in, size_t count, const Take& take) {
  const auto width = in.number<uint8_t>();
  const std::span<const uint8_t> bytes = in.bytes(uint64_t{width} * count);
  if (!in.good()) return false;
  switch (width) {
    case 0:
      for (size_t i = 0; i < count; ++i) {
        if (!take(i, uint64_t{0})) return false;
      }
      return true;
    case 1:
      return take_all<uint8_t>(bytes, count, take);
    case 2:
      return take_all<uint16_t>(bytes, count, take);
    case 4:
      return take_all<uint32_t>(bytes, count, take);
    case 8:
      return take_all<uint64_t>(bytes, count, take);
    default:
      return false;
  }
}

uint64_t hash_of(std::span<const uint8_t> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

// The greatest common divisor of the differences of all times; 1 if there is none.
int64_t unit_of(const VideoTrack& track) {
  int64_t unit = 0;
  for (const MediaPacket& packet : track.packets) {
    unit = std::gcd(unit, packet.pts - track.packets[0].pts);
    if (unit == 1) break;
  }
  return std::max<int64_t>(unit, 1);
}

void write_packets(const VideoTrack& track, ByteWriter& out) {
  const size_t count = track.packets.size();
  std::vector<uint64_t> values(count);
  const auto column = [&](const auto& of) {
    for (size_t i = 0; i < count; ++i) values[i] = of(i);
    write_column(out, values);
  };
  const std::vector<MediaPacket>& packets = track.packets;
  column([&](size_t i) { return uint64_t{packets[i].size}; });
  column([&](size_t i) {
    const int64_t before = i == 0 ? 0 : packets[i - 1].offset + packets[i - 1].size;
    return folded(packets[i].offset - before);
  });
  const int64_t unit = unit_of(track);
  out.number(unit);
  out.number(count ? packets[0].pts : int64_t{0});
  column(
      [&](size_t i) { return i == 0 ? 0 : folded((packets[i].pts - packets[i - 1].pts) / unit); });
  std::vector<uint8_t> keys((count + 7) / 8, 0);
  for (size_t i = 0; i < count; ++i) keys[i / 8] |= static_cast<uint8_t>(packets[i].key << i % 8);
  out.bytes(keys);
}

bool read_packets(ByteReader& in, uint64_t file_bytes, VideoTrack& track) {
  std::vector<MediaPacket>& packets = track.packets;
  const size_t count = packets.size();
  MediaPacket* const to = packets.data();
  if (!read_column(in, count, [&](size_t i, uint64_t size) {
        to[i].size = static_cast<uint32_t>(size);
        return size > 0 && size <= UINT32_MAX;
      })) {
    return false;
  }
  uint64_t end = 0;
  if (!read_column(in, count, [&](size_t i, uint64_t gap) {
        const uint64_t offset = end + static_cast<uint64_t>(unfolded(gap));
        to[i].offset = static_cast<int64_t>(offset);
        end = offset + to[i].size;
        return offset <= file_bytes && to[i].size <= file_bytes - offset;
      })) {
    return false;
  }
  const auto unit = in.number<uint64_t>();
  auto pts = in.number<uint64_t>();
  if (!read_column(in, count, [&](size_t i, uint64_t delta) {
        // any value is accepted here and checked later
        pts += static_cast<uint64_t>(unfolded(delta)) * unit;
        to[i].pts = static_cast<int64_t>(pts);
        return to[i].pts >= -kMaxIndexTime && to[i].pts <= kMaxIndexTime;
      })) {
    return false;
  }
  const std::span<const uint8_t> keys = in.bytes((count + 7) / 8);
  if (!in.good()) return false;
  for (size_t i = 0; i < count; ++i) to[i].key = keys[i / 8] >> i % 8 & 1;
  return true;
}

// Each frame has its own packet, in time order, so there are no duplicates.
bool read_frames(ByteReader& in, VideoTrack& track) {
  uint64_t number = UINT64_MAX;
  int64_t pts = INT64_MIN;
  return read_column(in, track.frames.size(), [&](size_t i, uint64_t delta) {
    const uint64_t before = number;
    number += 1 + static_cast<uint64_t>(unfolded(delta));
    if (number >= track.packets.size()) return false;
    const int64_t shown = track.packets[number].pts;
    if (shown < pts || (shown == pts && number <= before)) return false;
    track.frames[i] = static_cast<uint32_t>(number);
    pts = shown;
    return true;
  });
}

bool read_head(ByteReader& in, VideoTrack& track) {
  const auto codec = in.number<uint8_t>();
  track.quarter_turns = in.number<uint8_t>();
  const auto matrix = in.number<uint8_t>(), range = in.number<uint8_t>();
  const auto transfer = in.number<uint8_t>();
  track.width = in.number<int32_t>();
  track.height = in.number<int32_t>();
  track.ticks_per_second = in.number<int64_t>();
  track.ticks_divisor = in.number<int64_t>();
  track.duration = in.number<int64_t>();
  const std::span<const uint8_t> parameters = in.bytes(in.number<uint32_t>());
  track.parameters.assign(parameters.begin(), parameters.end());
  track.codec = static_cast<VideoCodec>(codec);
  track.color = {static_cast<ColorMatrix>(matrix), static_cast<ColorRange>(range),
                 static_cast<ColorTransfer>(transfer)};
  return in.good() && codec <= static_cast<uint8_t>(VideoCodec::kMJPEG) &&
         track.quarter_turns < 4 && matrix <= static_cast<uint8_t>(ColorMatrix::kOther) &&
         range <= static_cast<uint8_t>(ColorRange::kFull) &&
         transfer <= static_cast<uint8_t>(ColorTransfer::kHLG) && track.width >= 0 &&
         track.height >= 0 && track.width <= 1 << 16 && track.height <= 1 << 16 &&
         track.ticks_per_second > 0 && track.ticks_divisor > 0 &&
         track.duration >= -kMaxIndexTime && track.duration <= kMaxIndexTime;
}

void write_head(const VideoTrack& track, ByteWriter& out) {
  out.number(static_cast<uint8_t>(track.codec));
  out.number(static_cast<uint8_t>(track.quarter_turns));
  out.number(static_cast<uint8_t>(track.color.matrix));
  out.number(static_cast<uint8_t>(track.color.range));
  out.number(static_cast<uint8_t>(track.color.transfer));
  out.number(static_cast<int32_t>(track.width));
  out.number(static_cast<int32_t>(track.height));
  out.number(track.ticks_per_second);
  out.number(track.ticks_divisor);
  out.number(track.duration);
  out.number(static_cast<uint32_t>(track.parameters.size()));
  out.bytes(track.parameters);
}

}  // namespace

bool has_video_index(const VideoTrack& track) { return track.codec <= VideoCodec::kMJPEG; }

std::vector<uint8_t> video_index_of(const VideoTrack& track) {
  ByteWriter out;
  out.bytes(kIndexMagic);
  write_head(track, out);
  out.number(static_cast<uint32_t>(track.packets.size()));
  out.number(static_cast<uint32_t>(track.frames.size()));
  write_packets(track, out);
  std::vector<uint64_t> frames(track.frames.size());
  for (size_t i = 0; i < frames.size(); ++i) {
    const int64_t expected = i == 0 ? 0 : int64_t{track.frames[i - 1]} + 1;
    frames[i] = folded(track.frames[i] - expected);
  }
  write_column(out, frames);
  out.number(hash_of(out.out));
  return std::move(out.out);
}

Result<VideoTrack> track_from_video_index(std::span<const uint8_t> index, uint64_t file_bytes) {
  if (index.size() < kIndexMagic.size() + kHashBytes) return bad_index("it is too short");
  const std::span<const uint8_t> content = index.first(index.size() - kHashBytes);
  ByteReader hash(index.last(kHashBytes)), in(content);
  if (in.text(kIndexMagic.size()) != kIndexMagic) return bad_index("it has a different version");
  if (hash.number<uint64_t>() != hash_of(content)) return bad_index("it is damaged");
  VideoTrack track;
  if (!read_head(in, track)) return bad_index("its description of the stream is invalid");
  const auto packets = in.number<uint32_t>(), frames = in.number<uint32_t>();
  // A packet takes at least a byte, for its size; a frame takes none, but there are not more frames
  // than packets.
  if (!in.good() || packets > in.left() || packets > kMaxVideoPackets || frames > packets) {
    return bad_index("it has more packets than bytes");
  }
  track.packets.resize(packets);
  track.frames.resize(frames);
  if (!read_packets(in, file_bytes, track) || !read_frames(in, track) || !in.at_end()) {
    return bad_index("its packets do not fit into a file of " + std::to_string(file_bytes) +
                     " bytes");
  }
  return track;
}

}  // namespace headrace
