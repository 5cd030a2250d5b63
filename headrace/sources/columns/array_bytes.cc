// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/array_bytes.h"

#include <algorithm>
#include <cstring>

#include "headrace/kernels/rows.h"

namespace headrace {
namespace {

template <class Word>
void swap_words(std::span<uint8_t> bytes) {
  for (size_t i = 0; i + sizeof(Word) <= bytes.size(); i += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    if constexpr (sizeof(Word) == 2) word = __builtin_bswap16(word);
    if constexpr (sizeof(Word) == 4) word = __builtin_bswap32(word);
    if constexpr (sizeof(Word) == 8) word = __builtin_bswap64(word);
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
}

// Writes elements [first, pixels) of each plane.
template <class Word>
void planes_from_pixels(const uint8_t* in, uint8_t* out, size_t first, size_t pixels,
                        size_t channels) {
  for (size_t c = 0; c < channels; ++c) {
    uint8_t* to = out + (c * pixels + first) * sizeof(Word);
    for (size_t i = first; i < pixels; ++i, to += sizeof(Word)) {
      std::memcpy(to, in + (i * channels + c) * sizeof(Word), sizeof(Word));
    }
  }
}

// The vector loop writes up to 63 bytes past its row, so it ends that far before the end of the
// plane.
void planes_from_bytes(const uint8_t* in, uint8_t* out, size_t pixels, size_t channels) {
  constexpr size_t kOverrun = 64, kRow = size_t{1} << 16;
  size_t done = 0;
  while (channels <= 4 && done + kOverrun < pixels) {
    const size_t count = std::min(pixels - kOverrun - done, kRow);
    uint8_t* planes[4];
    for (size_t c = 0; c < channels; ++c) planes[c] = out + c * pixels + done;
    deinterleave_row(in + done * channels, static_cast<int>(channels), static_cast<int>(count),
                     planes);
    done += count;
  }
  planes_from_pixels<uint8_t>(in, out, done, pixels, channels);
}

}  // namespace

void make_native(std::span<uint8_t> bytes, DType dtype, bool big_endian) {
  if (dtype == DType::kBool) {  // any other value than 0 and 1 would be invalid for the type
    for (uint8_t& byte : bytes) byte = byte != 0;
  }
  if (!big_endian) return;
  if (size_of(dtype) == 2) swap_words<uint16_t>(bytes);
  if (size_of(dtype) == 4) swap_words<uint32_t>(bytes);
  if (size_of(dtype) == 8) swap_words<uint64_t>(bytes);
}

void move_channels_first(const uint8_t* in, const Shape& shape, size_t element_bytes,
                         uint8_t* out) {
  const auto channels = static_cast<size_t>(shape[0]);
  const auto pixels = static_cast<size_t>(shape[1] * shape[2]);
  switch (element_bytes) {
    case 1:
      return planes_from_bytes(in, out, pixels, channels);
    case 2:
      return planes_from_pixels<uint16_t>(in, out, 0, pixels, channels);
    case 4:
      return planes_from_pixels<uint32_t>(in, out, 0, pixels, channels);
    default:
      return planes_from_pixels<uint64_t>(in, out, 0, pixels, channels);
  }
}

}  // namespace headrace
