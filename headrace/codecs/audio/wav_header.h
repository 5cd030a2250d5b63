// SPDX-License-Identifier: Apache-2.0
// The chunks of a WAV file: RIFF, RF64 and BW64 (EBU Tech 3306), WAVE_FORMAT_EXTENSIBLE.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// How a sample is stored, little-endian.
enum class WavSample : uint8_t {
  kUInt8,
  kInt16,
  kInt24,
  kInt32,
  kFloat32,
  kFloat64,
  kALaw,
  kMuLaw
};
int bytes_of(WavSample sample);

struct WavHeader {
  AudioHeader sound;
  WavSample sample = WavSample::kInt16;
  uint64_t data = 0;  // position of the first frame
  size_t frame_bytes = 0;
};

bool begins_like_wav(std::span<const uint8_t> bytes);
Result<WavHeader> read_wav_header(const ByteRanges& file);

}  // namespace headrace
