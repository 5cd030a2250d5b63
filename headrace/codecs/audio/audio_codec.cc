// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/audio_codec.h"

#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/codecs/audio/sound_tags.h"

namespace headrace {

Result<const AudioCodecRecord*> audio_codec_of(const ByteRanges& file) {
  static const std::vector<const AudioCodecRecord*> codecs = Registry<AudioCodecRecord>::all();
  const Result<uint64_t> begin = behind_id3(file);
  if (!begin) return begin.error();
  const Result<std::span<const uint8_t>> bytes = file.at(*begin, kSoundSignature);
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

bool begins_like_sound(std::span<const uint8_t> bytes) {
  const AudioCodecRecord* const codec = audio_codec_of(bytes);
  const ByteRanges file(bytes);
  const Result<uint64_t> begin = behind_id3(file);
  if (!codec || !begin) return false;
  const Result<std::span<const uint8_t>> first = file.at(*begin, kSoundSignature);
  return first && codec->sniff(*first);
}

AudioDecoder& AudioDecoders::of(const AudioCodecRecord& codec) {
  std::unique_ptr<AudioDecoder>& decoder = decoders_[&codec];
  if (!decoder) decoder = codec.make();
  return *decoder;
}

}  // namespace headrace
