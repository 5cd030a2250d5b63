// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/audio/frame_kernels.h"

#include <limits>
#include <utility>

#define HEADRACE_KERNEL "headrace/kernels/audio/frame_kernels.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

const FrameKernels& frame_kernels() { return *HEADRACE_BY_LEVEL(kKernels); }

}  // namespace headrace

#else  // at each SIMD level, without fusing products and sums

#include HEADRACE_LANES
// These need the lanes above:
#include "headrace/kernels/audio/logarithm_loops.h"
#include "headrace/kernels/audio/real_fft_loops.h"

namespace headrace::HEADRACE_LEVEL {
namespace {

constexpr int kRows = kLanes == 1 ? 1 : 4;  // rows of a block transposed at a time

void gather(const float* from, int64_t hop, int length, const float* weights, float* block,
            int64_t stride) {
  for (int j = 0; j < length; j += kRows) {
    Floats v[kRows];
    LoadTransposed(from + j, hop, v);
    for (int k = 0; k < kRows && j + k < length; ++k) {
      const Floats value = weights ? Mul(v[k], Set(weights[j + k])) : v[k];
      Store(block + stride * (j + k), value);
    }
  }
}

void scatter(const float* block, int64_t stride, int length, int frames, int64_t hop, float* to) {
  int j = 0;
  for (; frames == kLanes && j + kRows <= length; j += kRows) {
    Floats v[kRows];
    for (int k = 0; k < kRows; ++k) v[k] = Load(block + stride * (j + k));
    StoreTransposed(v, hop, to + j);
  }
  for (; j < length; ++j) {
    for (int l = 0; l < frames; ++l) to[l * hop + j] = block[stride * j + l];
  }
}

// Sum of each lane's samples, or of their squares. Four accumulators, each taking every fourth
// sample.
template <bool squared>
Floats total(const float* block, int length) {
  Floats sums[4] = {Set(0.0f), Set(0.0f), Set(0.0f), Set(0.0f)};
  for (int j = 0; j < length; ++j) {
    const Floats value = Load(block + int64_t{kLanes} * j);
    sums[j % 4] = Add(sums[j % 4], squared ? Mul(value, value) : value);
  }
  return Add(Add(sums[0], sums[1]), Add(sums[2], sums[3]));
}

void condition(const FrameConditioning& how, const float* weights, int length, float* raw_energies,
               float* energies, float* block) {
  if (how.remove_mean) {
    const Floats mean = Div(total<false>(block, length), Set(static_cast<float>(length)));
    for (int j = 0; j < length; ++j) {
      float* const at = block + int64_t{kLanes} * j;
      Store(at, Sub(Load(at), mean));
    }
  }
  Store(raw_energies, total<true>(block, length));
  const Floats share = Set(how.preemphasis);
  Floats before = Load(block);
  for (int j = 0; j < length; ++j) {
    float* const at = block + int64_t{kLanes} * j;
    const Floats value = Load(at);
    Store(at, Mul(Sub(value, Mul(before, share)), Set(weights[j])));
    before = value;
  }
  Store(energies, total<true>(block, length));
}

// A row's sums over adjacent groups of lanes, so that each weight is loaded once for all groups.
template <int groups>
inline void weigh_row(const SparseRows::Row& row, const float* weights, const float* in,
                      int64_t stride, Floats (&sums)[groups]) {
  Floats odd[groups];
#pragma GCC unroll 4
  for (int g = 0; g < groups; ++g) sums[g] = odd[g] = Set(0.0f);
  const auto add = [](Floats(&to)[groups], const float* column, float weight) {
    const Floats factor = Set(weight);
#pragma GCC unroll 4
    for (int g = 0; g < groups; ++g) {
      to[g] = Add(to[g], Mul(Load(column + g * kLanes), factor));
    }
  };
  int k = 0;
  for (; k + 2 <= row.count; k += 2, in += 2 * stride) {
    add(sums, in, weights[k]);
    add(odd, in + stride, weights[k + 1]);
  }
  if (k < row.count) add(sums, in, weights[k]);
#pragma GCC unroll 4
  for (int g = 0; g < groups; ++g) sums[g] = Add(sums[g], odd[g]);
}

// Number of groups; the last may have fewer lanes in use.
template <int groups>
void weigh_groups(const SparseRows& rows, const float* in, int64_t in_stride, int count, float* out,
                  int64_t out_stride) {
  for (const SparseRows::Row& row : rows.rows()) {
    Floats sums[groups];
    weigh_row<groups>(row, rows.weights() + row.weights, in + row.first * in_stride, in_stride,
                      sums);
    if (count == groups * kLanes) {
#pragma GCC unroll 4
      for (int g = 0; g < groups; ++g) Store(out + g * kLanes, sums[g]);
    } else {
      float rest[kLanes];
      Store(rest, sums[0]);
      std::copy_n(rest, count, out);
    }
    out += out_stride;
  }
}

void weigh(const SparseRows& rows, const float* in, int64_t in_stride, int count, float* out,
           int64_t out_stride) {
  int i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    weigh_groups<4>(rows, in + i, in_stride, 4 * kLanes, out + i, out_stride);
  }
  for (; i < count; i += kLanes) {
    weigh_groups<1>(rows, in + i, in_stride, std::min(kLanes, count - i), out + i, out_stride);
  }
}

constexpr FrameKernels kKernels{kLanes, gather,   scatter,    condition, powers,      weigh,
                                roots,  decibels, logarithms, largest,   raise_values};

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
