// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/store.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/store_levels.h"

namespace headrace {
namespace {

// Null for the scalar level.
const StoreKernels* kernels() {
  static const ByLevel<const StoreKernels*> by_level{nullptr, store_kernels_avx2(),
                                                     store_kernels_avx512(), store_kernels_neon()};
  return by_level.selected();
}

// Note [Division by residual]
// A vector division costs several times as much as the rest of the map. q = d * (1/std) is off by
// at most one ulp, and one step with the exact residual d - q*std (a fused multiply-add) nearly
// always lands on the correctly rounded quotient. "Nearly" is not enough, so the 256 possible
// values are computed this way when the table is made, and compared bit by bit.
float by_residual(int x, const Affine& affine, float reciprocal) {
  const float d = static_cast<float>(x) * affine.scale - affine.mean;
  const float q = d * reciprocal;
  return std::fma(std::fma(-q, affine.std, d), reciprocal, q);
}

// Two-byte dtypes in memory.
uint16_t two_bytes_of(float value, DType dtype) {
  if (dtype == DType::kUInt16) return static_cast<uint16_t>(value);
  return dtype == DType::kBFloat16 ? bfloat16_from_float32(value) : float16_from_float32(value);
}

bool equals_table(const StoreTable& table, int x, float value) {
  switch (table.dtype) {
    case DType::kFloat32:
      return std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(table.f32[x]);
    case DType::kFloat16:
      return float16_from_float32(value) == table.u16[x];
    case DType::kBFloat16:
      return bfloat16_from_float32(value) == table.u16[x];
    default:
      return false;
  }
}

// Note [One fused step]
// A 16-bit result keeps 8 or 11 of 24 bits, so an error in the last of these rarely shows. x *
// slope + offset, rounded once, mostly gives all 256 values correctly, though not their float32
// values; if it does not, nearby constants may.
bool find_fused(StoreTable& table) {
  const auto stepped = [](double exact, int steps) {
    auto value = static_cast<float>(exact);
    const float to = steps < 0 ? -INFINITY : INFINITY;
    for (int i = 0; i < std::abs(steps); ++i) value = std::nextafter(value, to);
    return value;
  };
  const double std = table.affine.std;
  for (const int slope_steps : {0, 1, -1}) {
    for (const int offset_steps : {0, 1, -1, 2, -2}) {
      table.slope = stepped(table.affine.scale / std, slope_steps);
      table.offset = stepped(-table.affine.mean / std, offset_steps);
      int x = 0;
      while (x < 256 && equals_table(table, x, std::fma(float(x), table.slope, table.offset))) ++x;
      if (x == 256) return true;
    }
  }
  return false;
}

void store_scalar(const StoreTable& table, const uint8_t* in, int begin, int count, void* out) {
  switch (table.dtype) {
    case DType::kFloat32:
      for (int i = begin; i < count; ++i) static_cast<float*>(out)[i] = table.f32[in[i]];
      return;
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      for (int i = begin; i < count; ++i) static_cast<uint16_t*>(out)[i] = table.u16[in[i]];
      return;
    default:
      for (int i = begin; i < count; ++i) static_cast<uint8_t*>(out)[i] = table.u8[in[i]];
      return;
  }
}

template <class Element>
void interleave(const void* const in[], int channels, int begin, int count, void* out) {
  for (int i = begin; i < count; ++i) {
    for (int c = 0; c < channels; ++c) {
      static_cast<Element*>(out)[i * channels + c] = static_cast<const Element*>(in[c])[i];
    }
  }
}

void interleave_elements(size_t bytes, const void* const in[], int channels, int count, void* out,
                         bool stream) {
  int begin = 0;
  if (const StoreKernels* simd = kernels(); simd && simd->interleave3 && channels == 3) {
    begin = simd->interleave3(static_cast<int>(bytes), in, count, out, stream);
  }
  switch (bytes) {
    case 1:
      return interleave<uint8_t>(in, channels, begin, count, out);
    case 2:
      return interleave<uint16_t>(in, channels, begin, count, out);
    default:
      return interleave<uint32_t>(in, channels, begin, count, out);
  }
}

}  // namespace

StoreTable make_store_table(DType dtype, std::span<const double, 256> values, const Affine& guess) {
  StoreTable table;
  table.dtype = dtype;
  table.identity = dtype == DType::kUInt8;
  table.affine = guess;
  table.reciprocal = 1 / guess.std;
  table.arithmetic = dtype != DType::kUInt8;
  for (int x = 0; x < 256; ++x) {
    const float value = static_cast<float>(values[x]);
    table.f32[x] = value;
    table.u16[x] = two_bytes_of(value, dtype);
    table.u8[x] = dtype == DType::kUInt8 ? static_cast<uint8_t>(values[x]) : 0;
    table.identity &= table.u8[x] == x;
    table.arithmetic =
        table.arithmetic && equals_table(table, x, by_residual(x, guess, table.reciprocal));
  }
  table.fused = table.arithmetic && find_fused(table);
  return table;
}

// Note [Streaming]
// A batch is larger than the caches, and is not read before it is full. An ordinary store first
// fetches the line that it overwrites and evicts one that is still useful; a non-temporal store
// does neither. On a Zen 5 core a float32 picture of 224 x 224 costs 50 us after decoding instead
// of 78 us, when cycling through 64 of them. Such stores are not ordered with later ones, hence
// finish_streaming().
void finish_streaming() {
  if (const StoreKernels* simd = kernels()) simd->fence();
}

constexpr size_t kLineBytes = 64;  // bytes of a cache line

void store_row(const StoreTable& table, const uint8_t* in, int count, void* out, bool stream) {
  if (table.identity) {
    std::copy_n(in, count, static_cast<uint8_t*>(out));
    return;
  }
  int begin = 0;
  const StoreKernels* const simd = kernels();
  if (simd && stream) {  // only whole lines are streamed, so start at the first one
    const size_t before = (0 - reinterpret_cast<uintptr_t>(out)) % kLineBytes;
    const auto head = static_cast<int>(std::min(before / size_of(table.dtype), size_t(count)));
    if (head > 0) store_row(table, in, head, out);
    in += head;
    count -= head;
    out = static_cast<uint8_t*>(out) + size_t(head) * size_of(table.dtype);
  }
  if (simd) begin = simd->row(table, in, count, out, stream);
  store_scalar(table, in, begin, count, out);
}

void store_row_interleaved(const StoreTable* const tables[], const uint8_t* const in[],
                           int channels, int count, void* out, bool stream) {
  constexpr int kMaxPlanes = 16;
  constexpr int kChunk = 256;  // pixels that are mapped, then interleaved, in the L1 cache
  const size_t bytes = size_of(tables[0]->dtype);
  if (channels == 1) return store_row(*tables[0], in[0], count, out, stream);
  alignas(64) uint8_t mapped[kMaxPlanes][kChunk * 4 + 64];
  for (int at = 0; at < count; at += kChunk) {
    const int pixels = std::min(kChunk, count - at);
    const void* rows[kMaxPlanes] = {};
    for (int c = 0; c < channels; ++c) {
      rows[c] = mapped[c];
      if (tables[c]->identity) {
        rows[c] = in[c] + at;
      } else {
        store_row(*tables[c], in[c] + at, pixels, mapped[c]);
      }
    }
    interleave_elements(bytes, rows, channels, pixels,
                        static_cast<uint8_t*>(out) + size_t(at) * channels * bytes, stream);
  }
}

}  // namespace headrace
