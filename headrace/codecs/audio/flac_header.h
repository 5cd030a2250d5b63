// SPDX-License-Identifier: Apache-2.0
// STREAMINFO, the first block of a FLAC file (RFC 9639, section 8.2).
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/audio/audio_codec.h"

namespace headrace {

struct FlacHeader {
  AudioHeader sound;  // frames 0: the file does not say
  int bits = 0;
  int64_t longest_block = 0;  // frames
};

bool begins_like_flac(std::span<const uint8_t> bytes);
// Of the file's first bytes, and its size, both behind tags.
Result<FlacHeader> read_flac_header(std::span<const uint8_t> bytes, uint64_t size);
inline constexpr size_t kFlacHeader = 42;  // bytes that this takes

}  // namespace headrace
