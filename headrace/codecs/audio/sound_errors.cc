// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/sound_errors.h"

#include <utility>

namespace headrace {
namespace {

const ErrorCode kCorruptSound{
    "HR0350", ErrorKind::kData, "corrupt audio",
    "The audio file's header or compressed samples are invalid: usually a download or a disk "
    "damaged the file. Nothing is repaired or skipped silently. Restore the file, or let "
    "on_error= decide what happens to such records."};

const ErrorCode kTruncatedSound{
    "HR0351", ErrorKind::kData, "truncated audio",
    "The file ends before all samples that its header declares. Usual causes are an interrupted "
    "download, copy or recording. Restore the file, rewrite it with its real length (sox, "
    "ffmpeg), or let on_error= decide what happens to such records."};

const ErrorCode kUnreadSound{
    "HR0352", ErrorKind::kUnsupported, "unsupported audio",
    "The file is valid, but of an unsupported form. Convert such files once, to FLAC or WAV if it "
    "must be lossless (ffmpeg -i in.m4a out.flac), or open a Python object that decodes them."};

const ErrorCode kTooLargeSound{
    "HR0353", ErrorKind::kResource, "audio decoding exceeds the memory limit",
    "Decoding would need more memory than is available. A clip transform (RandomClip, CenterClip) "
    "decodes only what it keeps."};

const ErrorCode kNoTrackOfSound{
    "HR0358", ErrorKind::kData, "file without audio",
    "The container is valid, but has no audio track, only video or subtitles. Skip such files "
    "(on_error=), or, for clips of videos, substitute silence (missing_audio=\"silence\")."};

constexpr const char* kFetchAgain =
    "download the file again, or leave such records out (on_error=)";

}  // namespace

Error corrupt_sound(std::string_view kind, std::string what) {
  return {.code = &kCorruptSound,
          .what = "no valid " + std::string(kind) + " file: " + std::move(what),
          .hint = kFetchAgain};
}

Error truncated_sound(std::string_view kind, int64_t frames, int64_t promised) {
  return truncated_audio(kind, "has " + std::to_string(frames) + " of the " +
                                   std::to_string(promised) + " frames that its header declares");
}

Error truncated_audio(std::string_view kind, std::string what) {
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
          .what = "this " + std::string(kind) + " file has no audio track",
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
