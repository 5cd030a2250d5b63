// SPDX-License-Identifier: Apache-2.0
// The loops of frame_kernels.h in lanes. Included by frame_kernels.cc with lanes of one number, and
// by each level's file after its own, between its target pragmas. No product is fused with a sum.
// Internal to kernels/.
#pragma once

#include "headrace/kernels/audio/frame_kernels_levels.h"
// In lanes, too:
#include "headrace/kernels/audio/logarithm_loops.h"
#include "headrace/kernels/audio/real_fft_loops.h"

namespace headrace {
namespace {

// Of `transposed`: what four rows of a block are at a time.
constexpr int kRows = kLanes == 1 ? 1 : 4;

void gather(const float* from, int64_t hop, int length, const float* weights, float* block) {
  for (int j = 0; j < length; j += kRows) {
    Floats v[kRows];
    gather_rows(from + j, hop, v);
    for (int k = 0; k < kRows && j + k < length; ++k) {
      const Floats value = weights ? product(v[k], all(weights[j + k])) : v[k];
      store(block + int64_t{kLanes} * (j + k), value);
    }
  }
}

void scatter(const float* block, int length, int frames, int64_t hop, float* to) {
  int j = 0;
  for (; frames == kLanes && j + kRows <= length; j += kRows) {
    Floats v[kRows];
    for (int k = 0; k < kRows; ++k) v[k] = load(block + int64_t{kLanes} * (j + k));
    scatter_rows(v, hop, to + j);
  }
  for (; j < length; ++j) {
    for (int l = 0; l < frames; ++l) to[l * hop + j] = block[int64_t{kLanes} * j + l];
  }
}

// Of the samples of each lane, or of their squares: four sums, of samples that lie so far apart.
template <bool squared>
Floats total(const float* block, int length) {
  Floats sums[4] = {all(0.0f), all(0.0f), all(0.0f), all(0.0f)};
  for (int j = 0; j < length; ++j) {
    const Floats value = load(block + int64_t{kLanes} * j);
    sums[j % 4] = sum(sums[j % 4], squared ? product(value, value) : value);
  }
  return sum(sum(sums[0], sums[1]), sum(sums[2], sums[3]));
}

void condition(const FrameConditioning& how, const float* weights, int length, float* raw_energies,
               float* energies, float* block) {
  if (how.remove_mean) {
    const Floats mean = quotient(total<false>(block, length), all(static_cast<float>(length)));
    for (int j = 0; j < length; ++j) {
      float* const at = block + int64_t{kLanes} * j;
      store(at, difference(load(at), mean));
    }
  }
  store(raw_energies, total<true>(block, length));
  const Floats share = all(how.preemphasis);
  Floats before = load(block);
  for (int j = 0; j < length; ++j) {
    float* const at = block + int64_t{kLanes} * j;
    const Floats value = load(at);
    store(at, product(difference(value, product(before, share)), all(weights[j])));
    before = value;
  }
  store(energies, total<true>(block, length));
}

// A row's sum over one group of lanes.
inline Floats weighed(const SparseRows::Row& row, const float* weights, const float* in,
                      int64_t stride) {
  Floats even = all(0.0f), odd = all(0.0f);
  int k = 0;
  for (; k + 2 <= row.count; k += 2, in += 2 * stride) {
    even = sum(even, product(load(in), all(weights[k])));
    odd = sum(odd, product(load(in + stride), all(weights[k + 1])));
  }
  if (k < row.count) even = sum(even, product(load(in), all(weights[k])));
  return sum(even, odd);
}

void weigh(const SparseRows& rows, const float* in, int64_t in_stride, int count, float* out,
           int64_t out_stride) {
  for (int i = 0; i < count; i += kLanes) {
    float* to = out + i;
    for (const SparseRows::Row& row : rows.rows()) {
      const float* const weights = rows.weights() + row.weights;
      const Floats made = weighed(row, weights, in + row.first * in_stride + i, in_stride);
      if (i + kLanes <= count) {
        store(to, made);
      } else {
        float rest[kLanes];
        store(rest, made);
        std::copy_n(rest, count - i, to);
      }
      to += out_stride;
    }
  }
}

constexpr FrameKernels kKernels{kLanes, gather,   scatter,    condition, powers,      weigh,
                                roots,  decibels, logarithms, largest,   raise_values};

}  // namespace
}  // namespace headrace
