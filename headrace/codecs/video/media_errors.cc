// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/media_errors.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

const ErrorCode kMissingFrame{
    "HR0367", ErrorKind::kData, "frame that does not come out",
    "The container says that there is a frame, and the decoder gave none when it was fed the "
    "packets that lead to it. Its neighbour is never given in its place. Usual causes are a file "
    "that was cut off or cut by a tool that left packets out. Write the file anew (ffmpeg -i in.mp4 "
    "out.mp4), or let on_error= decide what happens to such records."};

const ErrorCode kDamagedVideo{
    "HR0368", ErrorKind::kData, "damaged video",
    "The decoder found a packet that makes no sense, or made a frame of which a part is guessed. "
    "Nothing of it is handed over, nor of frames that may have been made from it. Usually a "
    "download or a disk has damaged the file. Restore it, or let on_error= decide what happens to "
    "such records."};

const ErrorCode kEndedMediaProcess{
    "HR0369", ErrorKind::kData, "decoding a video ended or took too long",
    "Videos are decoded in a process of their own, so that a file that crashes a decoder or keeps "
    "it busy for ever costs one record. That is what this one did. Frames before and after it are "
    "not affected, and the next record gets a new process. If it happens to sound files, too, the "
    "machine may be out of memory (the kernel kills processes then), or the limit of seconds too "
    "small for it."};

const ErrorCode kNoMediaProcess{
    "HR0370", ErrorKind::kConfig, "nothing to decode videos with",
    "Videos are decoded by a small program beside the engine, headrace-av, which is linked with "
    "libavcodec. It is missing where libavcodec's headers were not there when Headrace was built "
    "(apt-get install libavcodec-dev, then install Headrace anew), it does not start where "
    "libavcodec itself is missing (the message names Debian's package), and it refuses to work "
    "where the system does not let it give up its rights (seccomp); isolate=False does without "
    "that, for files that are trusted."};

const ErrorCode kUndecodedVideo{
    "HR0371", ErrorKind::kUnsupported, "kind of video that is not decoded",
    "The file is sound, and its frames are of a kind that is not delivered: with an alpha channel "
    "or a palette, of more than 12 bits, in colours without a matrix, of another size than the "
    "container says, or larger than the limit. Convert such files once (ffmpeg -i in.mov -pix_fmt "
    "yuv420p out.mp4)."};

// "frame 12, of packet 15"; and the packet's place in the file.
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

constexpr const char* kLeaveOut = "write the file anew, or leave such records out (on_error=)";

}  // namespace

Error missing_frame(const VideoTrack& track, uint32_t packet) {
  return {.code = &kMissingFrame,
          .what = "no frame came out of the decoder for " + frame_of(track, packet),
          .where = place_of(track, packet),
          .hint = kLeaveOut};
}

Error damaged_video(const VideoTrack& track, uint32_t packet, std::string what) {
  if (packet < track.packets.size()) what += ": " + frame_of(track, packet);
  return {.code = &kDamagedVideo,
          .what = std::move(what),
          .where = place_of(track, packet),
          .hint = kLeaveOut};
}

Error ended_media_process(std::string what) {
  return {.code = &kEndedMediaProcess,
          .what = std::move(what),
          .hint = "leave such records out (on_error=)"};
}

Error no_media_process(std::string what, std::string hint) {
  return {.code = &kNoMediaProcess, .what = std::move(what), .hint = std::move(hint)};
}

Error undecoded_video(std::string what, std::string hint) {
  return {.code = &kUndecodedVideo, .what = std::move(what), .hint = std::move(hint)};
}

}  // namespace headrace
