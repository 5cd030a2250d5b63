// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/sound_errors.h"

#include <utility>

namespace headrace {
namespace {

const ErrorCode kCorruptSound{
    "HR0350", ErrorKind::kData, "corrupt sound",
    "The sound's header or its compressed samples make no sense: usually a download or a disk has "
    "damaged the file. Nothing of such sounds is repaired or left out in silence. Restore the "
    "file, or let on_error= decide what happens to such records."};

const ErrorCode kTruncatedSound{
    "HR0351", ErrorKind::kData, "truncated sound",
    "The file ends before the samples that its header promises. Usual causes are an interrupted "
    "download, copy or recording. Restore the file, write it again with the length that it has "
    "(sox, ffmpeg), or let on_error= decide what happens to such records."};

const ErrorCode kUnreadSound{
    "HR0352", ErrorKind::kUnsupported, "kind of sound that is not read",
    "The file is sound, and of a form that is not read here. Convert such files once, to FLAC or "
    "WAV where nothing must be lost (ffmpeg -i in.m4a out.flac), or open a Python object that "
    "decodes them."};

const ErrorCode kTooLargeSound{"HR0353", ErrorKind::kResource, "sound needs too much memory",
                               "Decoding it would take more memory than there is. A clip "
                               "(RandomClip, CenterClip) decodes what it keeps and no more."};

const ErrorCode kNoTrackOfSound{
    "HR0358", ErrorKind::kData, "file without sound",
    "The container is sound, and there is no track of sound in it: it holds pictures or subtitles "
    "alone. Leave such files out (on_error=), or, for clips of videos, take silence in its place "
    "(no_sound=\"silence\")."};

constexpr const char* kFetchAgain = "fetch the file again, or leave such records out (on_error=)";

}  // namespace

Error corrupt_sound(std::string_view kind, std::string what) {
  return {.code = &kCorruptSound,
          .what = "no sound " + std::string(kind) + " file: " + std::move(what),
          .hint = kFetchAgain};
}

Error truncated_sound(std::string_view kind, int64_t frames, int64_t promised) {
  return cut_off_sound(kind, "has " + std::to_string(frames) + " of the " +
                                 std::to_string(promised) + " frames that its header promises");
}

Error cut_off_sound(std::string_view kind, std::string what) {
  return {.code = &kTruncatedSound,
          .what = "this " + std::string(kind) + " file " + std::move(what),
          .hint = kFetchAgain};
}

Error unread_sound(std::string_view kind, std::string what, std::string hint) {
  return {.code = &kUnreadSound,
          .what = "this " + std::string(kind) + " file " + std::move(what),
          .hint = std::move(hint)};
}

Error too_large_sound(std::string_view kind) {
  return {.code = &kTooLargeSound,
          .what = "decoding this " + std::string(kind) + " file takes too much memory",
          .hint = "leave such records out (on_error=)"};
}

Error no_track_of_sound(std::string_view kind) {
  return {.code = &kNoTrackOfSound,
          .what = "this " + std::string(kind) + " file has no track of sound",
          .hint = "leave such records out (on_error=)"};
}

Result<void> check_sound(std::string_view kind, const AudioHeader& header, size_t bytes,
                         int64_t frames_a_byte) {
  if (header.channels < 1 || header.sample_rate < 1 || header.frames < 0) {
    return corrupt_sound(kind, std::to_string(header.channels) + " channels of " +
                                   std::to_string(header.sample_rate) + " Hz");
  }
  if (header.channels > kMostSoundChannels || header.sample_rate > kMostSampleRate) {
    return unread_sound(kind,
                        "has " + std::to_string(header.channels) + " channels of " +
                            std::to_string(header.sample_rate) + " Hz; up to " +
                            std::to_string(kMostSoundChannels) + " of " +
                            std::to_string(kMostSampleRate) + " Hz are read",
                        "convert it to fewer channels or a lower rate");
  }
  const auto most = static_cast<int64_t>(bytes) * frames_a_byte;
  if (header.frames > most) {
    return corrupt_sound(kind, "its header promises " + std::to_string(header.frames) +
                                   " frames, more than its " + std::to_string(bytes) +
                                   " bytes can hold");
  }
  return {};
}

}  // namespace headrace
