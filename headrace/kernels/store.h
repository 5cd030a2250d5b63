// SPDX-License-Identifier: Apache-2.0
// Converts 8-bit samples to elements of the batch: by table lookup or exact arithmetic, including
// dtype and layout.
//
// A StoreTable maps each of the 256 values of one channel. make_store_table() checks whether
// vectorizable float arithmetic gives all 256 results bit for bit; if not, the table itself is
// used, so every map is exact at every SIMD level.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/base/dtype.h"
#include "headrace/kernels/half.h"

namespace headrace {

// scale, mean and std of ((x * scale) - mean) / std.
struct Affine {
  float scale = 1, mean = 0, std = 1;
};

struct StoreTable {
  DType dtype = DType::kUInt8;
  alignas(64) std::array<float, 256> f32{};     // dtype kFloat32
  alignas(64) std::array<uint16_t, 256> u16{};  // dtype kUInt16, kFloat16, kBFloat16: the bits
  alignas(64) std::array<uint8_t, 256> u8{};    // dtype kUInt8
  bool identity = false;                        // kUInt8: the identity
  // Whether ((x * scale) - mean) / std in float32, rounded to the dtype, gives the table's value
  // for all x, with the division computed as q = d * reciprocal corrected by its residual:
  // fma(fma(-q, std, d), reciprocal, q). See Note [Division by residual] in store.cc.
  bool arithmetic = false;
  Affine affine;
  float reciprocal = 1;
  // Whether fma(x, slope, offset), rounded to the dtype, gives it: Note [One fused step].
  bool fused = false;
  float slope = 1, offset = 0;
};

// The table of 256 values, which the dtype holds exactly; tries `guess` as an arithmetic form.
StoreTable make_store_table(DType dtype, std::span<const double, 256> values, const Affine& guess);

// Stores `count` samples of one channel's row as consecutive elements. Writes nothing else.
// `stream`: uses non-temporal stores, except at the ends of the row; see Note [Streaming] in
// store.cc.
void store_row(const StoreTable& table, const uint8_t* in, int count, void* out,
               bool stream = false);
// Must be called after streamed rows, before another thread may learn that they are complete.
void finish_streaming();
// The same for rows of 1..16 planes, interleaved (channels last): element c of pixel i goes to
// out[i * channels + c].
void store_row_interleaved(const StoreTable* const tables[], const uint8_t* const in[],
                           int channels, int count, void* out, bool stream = false);

}  // namespace headrace
