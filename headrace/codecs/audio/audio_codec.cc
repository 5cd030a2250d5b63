// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/audio_codec.h"

#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/codecs/audio/id3.h"

namespace headrace {

const AudioCodecRecord* audio_codec_of(std::span<const uint8_t> bytes) {
  static const std::vector<const AudioCodecRecord*> codecs = Registry<AudioCodecRecord>::all();
  bytes = behind_id3(bytes);
  bytes = bytes.first(std::min(bytes.size(), kSoundSignature));
  for (const AudioCodecRecord* codec : codecs) {
    if (codec->sniff(bytes)) return codec;
  }
  for (const AudioCodecRecord* codec : codecs) {
    if (codec->sniff_video && codec->sniff_video(bytes)) return codec;
  }
  return nullptr;
}

bool begins_like_sound(std::span<const uint8_t> bytes) {
  const AudioCodecRecord* const codec = audio_codec_of(bytes);
  bytes = behind_id3(bytes);
  return codec && codec->sniff(bytes.first(std::min(bytes.size(), kSoundSignature)));
}

AudioDecoder& AudioDecoders::of(const AudioCodecRecord& codec) {
  std::unique_ptr<AudioDecoder>& decoder = decoders_[&codec];
  if (!decoder) decoder = codec.make();
  return *decoder;
}

}  // namespace headrace
