// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/rows.h"

#include <algorithm>
#include <cstring>

namespace headrace::scalar {
namespace {

// A SIMD level's kernels process a prefix of the row and return its length; the scalar loops do the
// rest, and do everything for the scalar level.
int deinterleave3(const uint8_t*, int, uint8_t* const[]) { return 0; }
int mirror(const uint8_t*, int, uint8_t*) { return 0; }

}  // namespace
}  // namespace headrace::scalar

#define HEADRACE_OWN_SCALAR
#define HEADRACE_KERNEL "headrace/kernels/rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {
namespace {

constexpr int kWord = 8;

void transpose_bytes(const uint8_t* in, ptrdiff_t stride, int width, int height, uint8_t* out,
                     ptrdiff_t out_stride) {
  for (int x = 0; x < width; ++x) {
    for (int y = 0; y < height; ++y) out[x * out_stride + y] = in[y * stride + x];
  }
}

// Transposes kWord x kWord bytes by swapping halves of the square, then halves of these, in words
// whose first byte is the lowest.
void transpose_words(const uint8_t* in, ptrdiff_t stride, uint8_t* out, ptrdiff_t out_stride) {
  uint64_t rows[kWord];
  for (int y = 0; y < kWord; ++y) std::memcpy(&rows[y], in + y * stride, kWord);
  constexpr uint64_t kFirst[] = {0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff};
  for (int level = 2; level >= 0; --level) {
    const int apart = 1 << level, bits = 8 * apart;
    for (int y = 0; y < kWord; ++y) {
      if (y & apart) continue;
      uint64_t &a = rows[y], &b = rows[y + apart];
      const uint64_t swapped = ((a >> bits) ^ b) & kFirst[level];
      b ^= swapped;
      a ^= swapped << bits;
    }
  }
  for (int x = 0; x < kWord; ++x) std::memcpy(out + x * out_stride, &rows[x], kWord);
}

}  // namespace

void deinterleave_row(const uint8_t* in, int channels, int count, uint8_t* const out[]) {
  if (channels == 1) {
    std::memcpy(out[0], in, count);
    return;
  }
  int i = channels == 3 ? HEADRACE_BY_LEVEL(deinterleave3)(in, count, out) : 0;
  for (; i < count; ++i) {
    for (int c = 0; c < channels; ++c) out[c][i] = in[i * channels + c];
  }
}

void mirror_row(const uint8_t* in, int count, uint8_t* out) {
  constexpr int kShort = 128;  // the setup of a SIMD level's kernel costs more than such a row
  int i = count > kShort ? HEADRACE_BY_LEVEL(mirror)(in, count, out) : 0;
  if (count < kWord) {
    for (; i < count; ++i) out[i] = in[count - 1 - i];
    return;
  }
  for (; i < count; i += kWord) {
    const int at = std::min(i, count - kWord);  // the last one may overlap the previous one
    uint64_t word;
    std::memcpy(&word, in + (count - kWord - at), kWord);
    word = __builtin_bswap64(word);
    std::memcpy(out + at, &word, kWord);
  }
}

void transpose_plane(const uint8_t* in, ptrdiff_t stride, int width, int height, uint8_t* out,
                     ptrdiff_t out_stride) {
  constexpr int kTile = 16;  // a tile's rows on both sides fit in the L1 cache
  for (int y0 = 0; y0 < height; y0 += kTile) {
    const int y1 = std::min(y0 + kTile, height);
    for (int x0 = 0; x0 < width; x0 += kTile) {
      const int x1 = std::min(x0 + kTile, width);
      for (int y = y0; y < y1; y += kWord) {
        for (int x = x0; x < x1; x += kWord) {
          const uint8_t* const from = in + y * stride + x;
          uint8_t* const to = out + x * out_stride + y;
          if (y + kWord <= y1 && x + kWord <= x1) {
            transpose_words(from, stride, to, out_stride);
          } else {
            transpose_bytes(from, stride, std::min(kWord, x1 - x), std::min(kWord, y1 - y), to,
                            out_stride);
          }
        }
      }
    }
  }
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

int deinterleave3(const uint8_t* in, int count, uint8_t* const out[]) {
  int i = 0;
  for (; kLoadsPart ? i < count : i + kByteLanes <= count; i += kByteLanes) {
    uint8_t* const to[] = {out[0] + i, out[1] + i, out[2] + i};
    DeinterleaveBytes3(in + 3 * i, 3 * (count - i), to);
  }
  return kLoadsPart ? count : i;
}

int mirror(const uint8_t* in, int count, uint8_t* out) {
  int i = 0;
  for (; i + kByteLanes <= count; i += kByteLanes) {
    StoreBytes(out + i, ReverseBytes(LoadBytes(in + count - kByteLanes - i)));
  }
  return i;
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
