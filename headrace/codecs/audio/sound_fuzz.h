// SPDX-License-Identifier: Apache-2.0
// Any bytes through a codec of sounds: an error, or exactly the samples of the window, which are
// those of the whole where the codec is lossless.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/audio/audio_codec.h"

namespace headrace::sound_fuzz {

inline Result<void> decode(AudioDecoder& decoder, std::span<const uint8_t> bytes,
                           const AudioHeader& header, int64_t begin, int64_t count,
                           std::vector<float>& samples) {
  samples.assign(static_cast<size_t>(count * header.channels), 0.5f);
  return decoder.decode(
      {.file = bytes, .begin = begin, .count = count, .planes = samples.data(), .stride = count});
}

inline void decode_as(std::string_view codec, const uint8_t* data, size_t size, bool lossless) {
  constexpr int64_t kMost = int64_t{1} << 20;
  static const auto decoder = Registry<AudioCodecRecord>::find(codec)->make();
  Buffer buffer(size);
  std::copy(data, data + size, buffer.data());
  const Result<AudioHeader> header = decoder->read_header(buffer.bytes());
  if (!header) return;
  if (header->channels < 1 || header->channels > kMostSoundChannels || header->frames < 0 ||
      header->sample_rate < 1 || header->sample_rate > kMostSampleRate) {
    std::abort();
  }
  if (header->frames == 0 || header->frames * header->channels > kMost) return;
  std::vector<float> whole, part;
  const bool good = bool(decode(*decoder, buffer.bytes(), *header, 0, header->frames, whole));
  const auto pick = [&](size_t i, int64_t below) {
    return size == 0 ? 0 : (data[size - 1 - i % size] * int64_t{257} + int64_t(i)) % below;
  };
  const int64_t begin = pick(0, header->frames);
  const int64_t count = 1 + pick(1, header->frames - begin);
  const bool part_good = bool(decode(*decoder, buffer.bytes(), *header, begin, count, part));
  if (!good || !part_good || !lossless) return;
  for (int c = 0; c < header->channels; ++c) {
    const float* const expected = whole.data() + c * header->frames + begin;
    if (std::memcmp(expected, part.data() + c * count, size_t(count) * sizeof(float)) != 0) {
      std::abort();
    }
  }
}

}  // namespace headrace::sound_fuzz
