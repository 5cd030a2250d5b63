// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/audio_codec.h"

#include <algorithm>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/codecs/audio/audio_tags.h"

namespace headrace {
namespace {

const ErrorCode kCorruptAudio{
    "HR0350", ErrorKind::kData, "corrupt audio",
    "The audio file's header or compressed samples are invalid: usually a download or a disk "
    "damaged the file. Nothing is repaired or skipped silently. Restore the file, or let "
    "on_error= decide what happens to such records."};

const ErrorCode kTruncatedAudio{
    "HR0351", ErrorKind::kData, "truncated audio",
    "The file ends before all samples that its header declares. Usual causes are an interrupted "
    "download, copy or recording. Restore the file, rewrite it with its real length (sox, "
    "ffmpeg), or let on_error= decide what happens to such records."};

const ErrorCode kUnsupportedAudio{
    "HR0352", ErrorKind::kUnsupported, "unsupported audio",
    "The file is valid, but its format is not supported. Convert such files once, to FLAC or WAV "
    "if it must be lossless (ffmpeg -i in.m4a out.flac), or decode them in a Python source."};

const ErrorCode kTooLargeAudio{
    "HR0353", ErrorKind::kResource, "audio decoding exceeds the memory limit",
    "Decoding would need more memory than is available. A clip transform (RandomClip, CenterClip) "
    "decodes only what it keeps."};

const ErrorCode kNoAudioTrack{
    "HR0358", ErrorKind::kData, "file without audio",
    "The container is valid, but has no audio track, only video or subtitles. Skip such files "
    "(on_error=), or, for clips of videos, substitute silence (missing_audio=\"silence\")."};

constexpr const char* kFetchAgain = "download the file again, or skip such records (on_error=)";

}  // namespace

Result<const AudioCodecRecord*> audio_codec_of(const ByteRanges& file) {
  static const std::vector<const AudioCodecRecord*> codecs = Registry<AudioCodecRecord>::all();
  const Result<uint64_t> begin = offset_after_id3(file);
  if (!begin) return begin.error();
  const Result<std::span<const uint8_t>> bytes = file.at(*begin, kAudioSignature);
  if (!bytes) return bytes.error();
  for (const AudioCodecRecord* codec : codecs) {
    if (codec->sniff(*bytes)) return codec;
  }
  for (const AudioCodecRecord* codec : codecs) {
    if (codec->sniff_video && codec->sniff_video(*bytes)) return codec;
  }
  return nullptr;
}

const AudioCodecRecord* audio_codec_of(std::span<const uint8_t> bytes) {
  const Result<const AudioCodecRecord*> codec = audio_codec_of(ByteRanges(bytes));
  return codec ? *codec : nullptr;
}

bool begins_like_audio(std::span<const uint8_t> bytes) {
  const AudioCodecRecord* const codec = audio_codec_of(bytes);
  const ByteRanges file(bytes);
  const Result<uint64_t> begin = offset_after_id3(file);
  if (!codec || !begin) return false;
  const Result<std::span<const uint8_t>> first = file.at(*begin, kAudioSignature);
  return first && codec->sniff(*first);
}

AudioDecoder& AudioDecoders::of(const AudioCodecRecord& codec) {
  std::unique_ptr<AudioDecoder>& decoder = decoders_[&codec];
  if (!decoder) decoder = codec.make();
  return *decoder;
}

Error corrupt_audio(std::string_view kind, std::string what) {
  return {.code = &kCorruptAudio,
          .what = "no valid " + std::string(kind) + " file: " + std::move(what),
          .hint = kFetchAgain};
}

Error truncated_audio(std::string_view kind, int64_t frames, int64_t promised) {
  return truncated_audio(kind, "has " + std::to_string(frames) + " of the " +
                                   std::to_string(promised) + " frames that its header declares");
}

Error truncated_audio(std::string_view kind, std::string what) {
  return {.code = &kTruncatedAudio,
          .what = "this " + std::string(kind) + " file " + std::move(what),
          .hint = kFetchAgain};
}

Error unsupported_audio(std::string_view kind, std::string what, std::string hint) {
  return {.code = &kUnsupportedAudio,
          .what = "this " + std::string(kind) + " file " + std::move(what),
          .hint = std::move(hint)};
}

Error too_large_audio(std::string_view kind) {
  return {.code = &kTooLargeAudio,
          .what = "decoding this " + std::string(kind) + " file takes too much memory",
          .hint = "skip such records (on_error=)"};
}

Error no_audio_track(std::string_view kind) {
  return {.code = &kNoAudioTrack,
          .what = "this " + std::string(kind) + " file has no audio track",
          .hint = "skip such records (on_error=)"};
}

Result<void> check_audio_header(std::string_view kind, const AudioHeader& header, size_t bytes,
                                int64_t frames_per_byte) {
  if (header.channels < 1 || header.sample_rate < 1 || header.frames < 0) {
    return corrupt_audio(kind, std::to_string(header.channels) + " channels of " +
                                   std::to_string(header.sample_rate) + " Hz");
  }
  if (header.channels > kMaxAudioChannels || header.sample_rate > kMaxSampleRate) {
    return unsupported_audio(kind,
                             "has " + std::to_string(header.channels) + " channels of " +
                                 std::to_string(header.sample_rate) + " Hz; up to " +
                                 std::to_string(kMaxAudioChannels) + " of " +
                                 std::to_string(kMaxSampleRate) + " Hz are supported",
                             "convert it to fewer channels or a lower rate");
  }
  const auto most = static_cast<int64_t>(bytes) * frames_per_byte;
  if (header.frames > most) {
    return corrupt_audio(kind, "its header declares " + std::to_string(header.frames) +
                                   " frames, which is more than its " + std::to_string(bytes) +
                                   " bytes can hold");
  }
  return {};
}

}  // namespace headrace
