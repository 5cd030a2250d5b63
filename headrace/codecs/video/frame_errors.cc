// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/frame_errors.h"

#include <algorithm>
#include <utility>

#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/video/h264_sequence.h"

namespace headrace {
namespace {

const ErrorCode kMissingFrame{
    "HR0367", ErrorKind::kData, "frame not decoded",
    "The container lists a frame, but the decoder did not output one when given the packets "
    "leading to it. A neighboring frame is never substituted. Usual causes are a truncated file, "
    "a file cut by a tool that dropped packets, and broadcast H.264 (PAFF) whose frames are two "
    "fields with a packet each: with both in one packet they decode. Re-encode the file (ffmpeg "
    "-i in.mp4 out.mp4), or let on_error= decide what happens to such records."};

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

Error missing_frame(const VideoTrack& track, uint32_t packet, std::span<const uint8_t> bytes) {
  if (track.codec == VideoCodec::kH264 && is_h264_field(track.parameters, bytes)) {
    return {.code = &kMissingFrame,
            .what = "the two fields of a frame are in separate packets: " + frame_of(track, packet),
            .where = place_of(track, packet),
            .hint = "write the file again: ffmpeg -i in.mp4 -flags +ildct+ilme out.mp4"};
  }
  return {.code = &kMissingFrame,
          .what = "no frame came out of the decoder for " + frame_of(track, packet),
          .where = place_of(track, packet),
          .hint = "re-encode the file, or leave such records out (on_error=)"};
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
