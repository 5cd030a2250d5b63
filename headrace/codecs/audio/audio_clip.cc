// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/audio_clip.h"

#include <algorithm>
#include <string>

#include "headrace/base/clock.h"
#include "headrace/base/registry.h"

namespace headrace {
namespace {

const ErrorCode kUnknownAudio{
    "HR0354", ErrorKind::kData, "unknown audio format",
    "Audio is recognized by its first bytes, never by name, and the first bytes of this file match "
    "no codec in this build. Often the file is of a different type (an HTML page from a failed "
    "download, a text file), or empty. `headrace formats` lists the codecs."};

Error unknown_audio(std::span<const uint8_t> bytes) {
  Error error{.code = &kUnknownAudio, .what = "the file is empty"};
  if (!bytes.empty()) {
    constexpr char kHex[] = "0123456789abcdef";
    error.what = "no audio codec recognizes these bytes; they begin with";
    for (const uint8_t byte : bytes.first(std::min<size_t>(bytes.size(), 8))) {
      error.what += {' ', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  for (const AudioCodecRecord* codec : Registry<AudioCodecRecord>::all()) {
    error.note += (error.note.empty() ? "codecs: " : ", ") + std::string(codec->name);
  }
  error.hint = bytes.empty() ? "download the file again, or skip it"
                             : "convert such files to FLAC or WAV, or skip them";
  return error;
}

}  // namespace

void AudioClip::cut(int64_t from, int64_t length) {
  if (from < 0) {
    before -= from;
    from = 0;
  }
  const int64_t end = from + length;
  const int64_t first = std::clamp(from, before, before + count);
  const int64_t last = std::clamp(end, before, before + count);
  const int64_t head = std::max<int64_t>(0, std::min(end, before) - from);
  begin += first - before;
  count = last - first;
  before = head;
  after = length - head - count;
}

Result<AudioClip> open_audio(const ByteRanges& file, AudioDecoders& decoders) {
  const Result<const AudioCodecRecord*> codec = audio_codec_of(file);
  if (!codec) return codec.error();
  if (!*codec) {
    const Result<std::span<const uint8_t>> first = file.at(0, kAudioSignature);
    return first ? unknown_audio(*first) : first.error();
  }
  Result<AudioHeader> header = decoders.of(**codec).read_header(file);
  if (!header) return std::move(header.error());
  AudioClip audio;
  audio.codec = *codec;
  audio.file = file;
  audio.header = *header;
  audio.count = header->frames;
  return audio;
}

Result<void> decode_samples(const AudioClip& audio, AudioDecoders& decoders, float* samples,
                            int64_t stride) {
  for (int c = 0; c < audio.header.channels; ++c) {
    float* const channel = samples + c * stride;
    std::fill_n(channel, audio.before, 0.0f);
    std::fill_n(channel + audio.before + audio.count, audio.after, 0.0f);
  }
  if (audio.count == 0) return {};
  const double begin = now();
  Result<void> decoded = decoders.of(*audio.codec)
                             .decode({.file = audio.file,
                                      .begin = audio.begin,
                                      .count = audio.count,
                                      .planes = samples + audio.before,
                                      .stride = stride,
                                      .media = audio.decoding});
  decoders.add_seconds(now() - begin);
  return decoded;
}

}  // namespace headrace
