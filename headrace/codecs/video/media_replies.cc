// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/video/media_decoder.h"
#include "headrace/codecs/video/nal.h"

namespace headrace {
namespace {

bool one_of(int value, std::initializer_list<int> values) {
  return std::ranges::find(values, value) != values.end();
}

bool has_known_planes(const media::Frame& frame) {
  const bool is_gray = frame.planes == 1 && frame.chroma_x == 0 && frame.chroma_y == 0;
  const bool is_colored = frame.planes == 3 && one_of(frame.chroma_x, {0, 1}) &&
                          one_of(frame.chroma_y, {0, 1}) && frame.chroma_y <= frame.chroma_x;
  return (is_gray || is_colored) && one_of(frame.bits, {8, 10, 12}) && frame.interlaced <= 1 &&
         frame.matrix <= static_cast<uint32_t>(ColorMatrix::kOther) &&
         frame.range <= static_cast<uint32_t>(ColorRange::kFull) &&
         frame.transfer <= static_cast<uint32_t>(ColorTransfer::kHLG);
}

// For H.264, a decoder's interlacing flag depends on what it decoded before: for pictures shown as
// two fields but not coded as fields (film at television rates) it repeats the last picture's flag.
// If the sequence has no fields, the flag is cleared.
bool holds_fields(const media::Frame& frame, const VideoTrack& track) {
  return frame.interlaced == 1 &&
         (track.codec != VideoCodec::kH264 || may_hold_h264_fields(track.parameters));
}

// Whether rows of `row_bytes`, and the bytes readable after them, fit into `bytes`. REQUIRES: rows
// >= 1
bool lies_inside(uint64_t offset, int64_t stride, int64_t rows, int64_t row_bytes, size_t bytes) {
  if (stride < row_bytes || stride > int64_t{1} << 32 || offset > bytes) return false;
  const auto all = (rows - 1) * stride + row_bytes + media::kReadPadding;
  return static_cast<uint64_t>(all) <= bytes - offset;
}

const ErrorCode kMissingFrame{
    "HR0367", ErrorKind::kData, "frame not decoded",
    "The container lists a frame, but the decoder did not output it when given the packets leading "
    "to it. A neighboring frame is never substituted. Usual causes are a truncated file, a file "
    "cut by a tool that dropped packets, and broadcast H.264 (PAFF) whose frames are two fields "
    "with a packet each: with both in one packet they decode. Re-encode the file (ffmpeg -i in.mp4 "
    "out.mp4), or let on_error= decide what happens to such records."};

// "frame 12, of packet 15"; and the packet's position in the file.
std::string frame_of(const VideoTrack& track, uint32_t packet) {
  const auto found = std::ranges::find(track.frames, packet);
  std::string text;
  if (found != track.frames.end()) {
    text = "frame " + std::to_string(found - track.frames.begin()) + ", of ";
  }
  return text + "packet " + std::to_string(packet);
}

Where place_of(const VideoTrack& track, uint32_t packet) {
  return {.offset = packet < track.packets.size() ? track.packets[packet].offset : -1};
}

}  // namespace

Result<YuvFrame> yuv_frame_of(const media::Frame& frame, std::span<const uint8_t> memory,
                              const VideoTrack& track) {
  if (!has_known_planes(frame)) return invalid_reply("planes");
  if (frame.width != track.width || frame.height != track.height) {
    return undecodable_video(
        "its frames are " + std::to_string(frame.width) + " x " + std::to_string(frame.height) +
            ", but the container declares " + std::to_string(track.width) + " x " +
            std::to_string(track.height),
        "convert it to one size: ffmpeg -i in.mp4 -vf scale=" + std::to_string(track.width) + ":" +
            std::to_string(track.height) + " out.mp4");
  }
  YuvFrame out{.width = frame.width,
               .height = frame.height,
               .planes = frame.planes,
               .chroma_x = frame.chroma_x,
               .chroma_y = frame.chroma_y,
               .interlaced = holds_fields(frame, track),
               .bits = frame.bits,
               .color = track.color};
  // The stream is more reliable than the container's copy.
  if (const auto matrix = static_cast<ColorMatrix>(frame.matrix);
      matrix != ColorMatrix::kUnspecified) {
    out.color.matrix = matrix;
  }
  if (const auto range = static_cast<ColorRange>(frame.range); range != ColorRange::kUnspecified) {
    out.color.range = range;
  }
  if (const auto transfer = static_cast<ColorTransfer>(frame.transfer);
      transfer != ColorTransfer::kUnspecified) {
    out.color.transfer = transfer;
  }
  if (out.color.matrix == ColorMatrix::kOther) {
    return undecodable_video("its color matrix is not supported",
                             "convert it: ffmpeg -i in.mp4 -vf colorspace=bt709 out.mp4");
  }
  const int sample_bytes = frame.bits > 8 ? 2 : 1;
  for (int plane = 0; plane < frame.planes; ++plane) {
    const int shift_x = plane ? frame.chroma_x : 0, shift_y = plane ? frame.chroma_y : 0;
    const int64_t columns = (int64_t{frame.width} + (1 << shift_x) - 1) >> shift_x;
    const int64_t rows = (int64_t{frame.height} + (1 << shift_y) - 1) >> shift_y;
    const auto p = static_cast<size_t>(plane);
    if (frame.offset[p] % static_cast<uint64_t>(sample_bytes) != 0 ||
        frame.stride[p] % sample_bytes != 0 ||
        !lies_inside(frame.offset[p], frame.stride[p], rows, columns * sample_bytes,
                     memory.size())) {
      return invalid_reply("offsets of planes");
    }
    out.plane[p] = memory.data() + frame.offset[p];
    out.stride[p] = static_cast<ptrdiff_t>(frame.stride[p]);
  }
  return out;
}

Error missing_frame(const VideoTrack& track, uint32_t packet, std::span<const uint8_t> bytes) {
  if (track.codec == VideoCodec::kH264 && is_h264_field(track.parameters, bytes)) {
    return {.code = &kMissingFrame,
            .what = "the two fields of a frame are in separate packets: " + frame_of(track, packet),
            .where = place_of(track, packet),
            .hint = "re-encode the file: ffmpeg -i in.mp4 -flags +ildct+ilme out.mp4"};
  }
  return {.code = &kMissingFrame,
          .what = "the decoder returned no frame for " + frame_of(track, packet),
          .where = place_of(track, packet),
          .hint = "re-encode the file, or skip such records (on_error=)"};
}

Error damaged_video(const VideoTrack& track, uint32_t packet, std::string what) {
  if (packet < track.packets.size()) what += ": " + frame_of(track, packet);
  Error error = damaged_media(std::move(what));
  error.where = place_of(track, packet);
  return error;
}

Error failure_of(const media::Reply& reply, const VideoTrack& track) {
  Error error = failure_of(reply);
  if (reply.failure != media::Failure::kDamage) return error;
  return damaged_video(track, reply.number, std::move(error.what));
}

}  // namespace headrace
