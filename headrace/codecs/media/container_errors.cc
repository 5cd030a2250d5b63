// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/container_errors.h"

#include <utility>

namespace headrace {
namespace {

const ErrorCode kUnknownVideo{
    "HR0360", ErrorKind::kUnsupported, "no video that is known",
    "The bytes begin like no container of video that is read here: MP4, MOV and 3GP, Matroska and "
    "WebM, AVI. Other containers are put into one of these once, without another loss: ffmpeg -i "
    "in.ts -c copy out.mkv. Playlists and scripts that name other files are never followed."};

const ErrorCode kCorruptVideo{
    "HR0361", ErrorKind::kData, "corrupt video",
    "What the container says of its packets makes no sense: usually a download or a disk has "
    "damaged the file. No packet is guessed or left out in silence. Restore the file, or let "
    "on_error= decide what happens to such records."};

const ErrorCode kTruncatedVideo{
    "HR0362", ErrorKind::kData, "truncated video",
    "The file ends before the packets that it promises. Usual causes are an interrupted download, "
    "copy or recording. Restore the file, write what is there again (ffmpeg -i in.mp4 -c copy "
    "out.mp4), or let on_error= decide what happens to such records."};

const ErrorCode kUnreadVideo{
    "HR0363", ErrorKind::kUnsupported, "kind of video that is not read",
    "The file is sound, and of a form that is not read here: another codec, encrypted, pictures in "
    "another file, edits that cannot be kept. Convert such files once, or write them again where "
    "only the container is unusual (ffmpeg -i in -c copy out.mp4); the message says which."};

const ErrorCode kNoPictures{
    "HR0364", ErrorKind::kData, "video without pictures",
    "The container is sound, and there is no track of pictures in it, or none of its packets is "
    "shown: it holds sound or subtitles alone. Read such a file as a sound, or leave it out."};

const ErrorCode kTooManyPackets{
    "HR0365", ErrorKind::kResource, "video with too many packets",
    "A track may have four million packets, which is 38 hours of 30 frames a second. Cut such a "
    "file into parts: ffmpeg -i in.mp4 -c copy -f segment -segment_time 3600 part%d.mp4."};

constexpr const char* kFetchAgain = "fetch the file again, or leave such records out (on_error=)";

}  // namespace

Error unknown_video(std::string what, std::string hint) {
  return {.code = &kUnknownVideo, .what = std::move(what), .hint = std::move(hint)};
}

Error corrupt_video(std::string_view kind, std::string what) {
  return {.code = &kCorruptVideo,
          .what = "no sound " + std::string(kind) + " file: " + std::move(what),
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
          .hint = "read it as a sound, or leave such records out (on_error=)"};
}

Error too_many_packets(std::string_view kind) {
  return {
      .code = &kTooManyPackets,
      .what = "this " + std::string(kind) + " file has more than " +
              std::to_string(kMostVideoPackets) + " packets of pictures",
      .hint = "cut it into parts: ffmpeg -i in -c copy -f segment -segment_time 3600 out%d.mp4"};
}

}  // namespace headrace
