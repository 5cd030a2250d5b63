// SPDX-License-Identifier: Apache-2.0
// Audio before decoding: the needed part of a file, and the amount of silence around it. Transforms
// that trim or pad edit it, and the codec decodes what remains.
//
// A value type. Borrows the encoded bytes, or shares the open file from which they are read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

struct AudioClip {
  const AudioCodecRecord* codec = nullptr;  // null: nothing to decode, the samples are elsewhere
  ByteRanges file;
  AudioHeader header;
  int64_t before = 0;            // frames of silence
  int64_t begin = 0, count = 0;  // of the file
  int64_t after = 0;             // frames of silence
  MediaOptions decoding = {};

  bool is_encoded() const { return codec != nullptr; }
  int64_t frames() const { return before + count + after; }
  size_t sample_bytes() const {
    return static_cast<size_t>(frames()) * static_cast<size_t>(header.channels) * sizeof(float);
  }
  // Keeps frames [from, from + length) of the audio; those outside it are silence.
  void cut(int64_t from, int64_t length);
};

// Finds the codec and reads the header: HR0354 if no codec recognizes the bytes.
Result<AudioClip> open_audio(const ByteRanges& file, AudioDecoders& decoders);
// Decodes all of its frames(); channel c begins at samples[c * stride]. After an error the samples
// are unspecified.
Result<void> decode_samples(const AudioClip& audio, AudioDecoders& decoders, float* samples,
                            int64_t stride);

}  // namespace headrace
