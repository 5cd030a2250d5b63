// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/media_errors.h"

#include <utility>

#include "headrace/codecs/media/media_process.h"

namespace headrace {
namespace {

const ErrorCode kDamagedVideo{
    "HR0368", ErrorKind::kData, "damaged video",
    "The decoder found an invalid packet, or concealed part of a frame. Neither that frame nor "
    "frames that may depend on it are delivered. Usually a download or a disk damaged the file. "
    "Restore it, or let on_error= decide what happens to such records."};

const ErrorCode kEndedMediaProcess{
    "HR0369", ErrorKind::kData, "video decoder crashed or timed out",
    "Videos are decoded in a separate process, so a file that crashes or hangs the decoder costs "
    "only its own record. That happened here. Earlier and later frames are not affected, and the "
    "next record gets a new process. If it also happens with intact files, the machine may be out "
    "of memory (the kernel then kills processes), or the time limit is too short for it."};

const ErrorCode kNoMediaProcess{
    "HR0370", ErrorKind::kConfig, "video decoder missing",
    "Videos are decoded by a separate program, headrace-av. With the wheels, it comes from the "
    "package headrace-media (pip install headrace-media). Built from source, it needs libavcodec's "
    "headers (apt-get install libavcodec-dev, then install Headrace again), and libavcodec itself "
    "when it starts (the message names Debian's package). It refuses to run if the system does not "
    "let it drop its privileges (seccomp); for trusted files, isolate=False runs it without the "
    "sandbox."};

const ErrorCode kUndecodableVideo{
    "HR0371", ErrorKind::kUnsupported, "unsupported video codec",
    "The file is valid, but its frames are unsupported: they have an alpha channel, a palette, "
    "more than 12 bits, no color matrix, a size that differs from the container's, or more pixels "
    "than the limit allows. Convert such files once (ffmpeg -i in.mov -pix_fmt yuv420p out.mp4)."};

std::string name_in(const media::Reply& reply) {
  std::string name;
  for (const char c : reply.name) {
    if (c < ' ' || c > '~') break;
    name += c;
  }
  return name;
}

constexpr const char* kLeaveOut = "re-encode the file, or skip such records (on_error=)";

const ErrorCode kUnknownVideo{
    "HR0360", ErrorKind::kUnsupported, "unknown video format",
    "The file lacks the signature of a supported video container: MP4, MOV and 3GP, Matroska and "
    "WebM, AVI. Remux other containers once, without re-encoding: ffmpeg -i in.ts -c copy out.mkv. "
    "Playlists and scripts that refer to other files are never followed."};

const ErrorCode kCorruptVideo{
    "HR0361", ErrorKind::kData, "corrupt video",
    "The container's packet information is invalid: usually a download or a disk damaged the "
    "file. No packet is guessed or skipped silently. Restore the file, or let on_error= decide "
    "what happens to such records."};

const ErrorCode kTruncatedVideo{
    "HR0362", ErrorKind::kData, "truncated video",
    "The file ends before the packets that its header declares. Usual causes are an interrupted "
    "download, copy or recording. Restore the file, remux the rest (ffmpeg -i in.mp4 -c copy "
    "out.mp4), or let on_error= decide what happens to such records."};

const ErrorCode kUnsupportedVideo{
    "HR0363", ErrorKind::kUnsupported, "unsupported video container",
    "The file is valid, but unsupported: another codec, encryption, frames in another file, or "
    "edit lists that cannot be honored. Convert such files once, or remux them if only the "
    "container is unusual (ffmpeg -i in -c copy out.mp4); the message names the reason."};

const ErrorCode kNoVideoTrack{
    "HR0364", ErrorKind::kData, "file without video",
    "The container is valid, but has no video track, or no visible packet in it: only audio or "
    "subtitles. Read such a file as audio, or skip it."};

const ErrorCode kTooManyPackets{
    "HR0365", ErrorKind::kResource, "too many video packets",
    "A track may have at most four million packets: 38 hours at 30 frames per second. Split such a "
    "file: ffmpeg -i in.mp4 -c copy -f segment -segment_time 3600 part%d.mp4."};

constexpr const char* kFetchAgain = "download the file again, or skip such records (on_error=)";

}  // namespace

Error damaged_media(std::string what) {
  return {.code = &kDamagedVideo, .what = std::move(what), .hint = kLeaveOut};
}

Error ended_media_process(std::string what) {
  return {.code = &kEndedMediaProcess,
          .what = std::move(what),
          .hint = "skip such records (on_error=)"};
}

Error no_media_process(std::string what, std::string hint) {
  return {.code = &kNoMediaProcess, .what = std::move(what), .hint = std::move(hint)};
}

Error undecodable_video(std::string what, std::string hint) {
  return {.code = &kUndecodableVideo, .what = std::move(what), .hint = std::move(hint)};
}

Error invalid_reply(const char* what) {
  return ended_media_process(std::string("the decoding process sent an invalid message (") + what +
                             "), and was killed");
}

Error failure_of(const media::Reply& reply) {
  const std::string name = name_in(reply);
  switch (reply.failure) {
    case media::Failure::kNoSandbox:
      return no_media_process(
          "the system does not let headrace-av drop its privileges (seccomp)",
          "allow seccomp in the container; or, for files that you trust, isolate=False");
    case media::Failure::kNoDecoder:
      return no_media_process("this machine's libavcodec has no decoder `" + name + "`",
                              media_install());
    case media::Failure::kParameters:
      return damaged_media("the decoder cannot be opened with the file's parameters");
    case media::Failure::kDamage:
      return damaged_media("the decoder found damage");
    case media::Failure::kFormat:
      return undecodable_video("its frames have an unsupported pixel format" +
                                   (name.empty() ? std::string() : " (" + name + ")"),
                               "convert it: ffmpeg -i in.mov -pix_fmt yuv420p out.mp4");
    case media::Failure::kMemory:
      return undecodable_video("decoding it takes more memory than frames of its size need",
                               "skip such records (on_error=)");
    case media::Failure::kNone:
    case media::Failure::kRequest:
      break;
  }
  return invalid_reply("failure");
}

Error unknown_video(std::string what, std::string hint) {
  return {.code = &kUnknownVideo, .what = std::move(what), .hint = std::move(hint)};
}

Error corrupt_video(std::string_view kind, std::string what) {
  return {.code = &kCorruptVideo,
          .what = "no valid " + std::string(kind) + " file: " + std::move(what),
          .hint = kFetchAgain};
}

Error truncated_video(std::string_view kind, std::string what) {
  return {.code = &kTruncatedVideo,
          .what = "this " + std::string(kind) + " file " + std::move(what),
          .hint = kFetchAgain};
}

Error unsupported_video(std::string_view kind, std::string what, std::string hint) {
  return {.code = &kUnsupportedVideo,
          .what = "this " + std::string(kind) + " file " + std::move(what),
          .hint = std::move(hint)};
}

Error no_video_track(std::string_view kind, std::string what) {
  return {.code = &kNoVideoTrack,
          .what = "this " + std::string(kind) + " file " + std::move(what),
          .hint = "read it as audio, or skip such records (on_error=)"};
}

Error too_many_packets(std::string_view kind) {
  return {.code = &kTooManyPackets,
          .what = "this " + std::string(kind) + " file has more than " +
                  std::to_string(kMaxVideoPackets) + " video packets",
          .hint = "split it: ffmpeg -i in -c copy -f segment -segment_time 3600 out%d.mp4"};
}

}  // namespace headrace
