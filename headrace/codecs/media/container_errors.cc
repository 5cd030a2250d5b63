// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/container_errors.h"

#include <utility>

namespace headrace {
namespace {

const ErrorCode kUnknownVideo{
    "HR0360", ErrorKind::kUnsupported, "unknown video format",
    "The file lacks the signature of a supported video container: MP4, MOV and 3GP, Matroska and "
    "WebM, AVI. Remux other containers once, without further loss: ffmpeg -i in.ts -c copy "
    "out.mkv. Playlists and scripts that refer to other files are never followed."};

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

const ErrorCode kUnreadVideo{
    "HR0363", ErrorKind::kUnsupported, "unsupported video container",
    "The file is valid, but unsupported: another codec, encryption, frames in another file, or "
    "edit lists that cannot be honored. Convert such files once, or remux them if only the "
    "container is unusual (ffmpeg -i in -c copy out.mp4); the message names the reason."};

const ErrorCode kNoPictures{
    "HR0364", ErrorKind::kData, "file without video",
    "The container is valid, but has no video track, or no visible packet in it: only audio or "
    "subtitles. Read such a file as audio, or skip it."};

const ErrorCode kTooManyPackets{
    "HR0365", ErrorKind::kResource, "too many video packets",
    "A track may have four million packets, which is 38 hours at 30 frames per second. Split such "
    "a file: ffmpeg -i in.mp4 -c copy -f segment -segment_time 3600 part%d.mp4."};

constexpr const char* kFetchAgain =
    "download the file again, or leave such records out (on_error=)";

}  // namespace

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

Error unread_video(std::string_view kind, std::string what, std::string hint) {
  return {.code = &kUnreadVideo,
          .what = "this " + std::string(kind) + " file " + std::move(what),
          .hint = std::move(hint)};
}

Error no_pictures(std::string_view kind, std::string what) {
  return {.code = &kNoPictures,
          .what = "this " + std::string(kind) + " file " + std::move(what),
          .hint = "read it as audio, or leave such records out (on_error=)"};
}

Error too_many_packets(std::string_view kind) {
  return {
      .code = &kTooManyPackets,
      .what = "this " + std::string(kind) + " file has more than " +
              std::to_string(kMostVideoPackets) + " video packets",
      .hint = "cut it into parts: ffmpeg -i in -c copy -f segment -segment_time 3600 out%d.mp4"};
}

}  // namespace headrace
