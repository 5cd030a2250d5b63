// SPDX-License-Identifier: Apache-2.0
// Computations on the frames of a signal, for as many frames at a time as a register has lanes: a
// block has sample j of all its frames at j * lanes. So a transform of any length, and any weighted
// sum of a frame's samples, is a loop without shuffles, and the same source is compiled for every
// SIMD level: all give the same bytes.
//
//     signal ──gather──> samples of a block ──powers──> its spectra ──weigh──> bands, one row each
//
// Any thread may call these functions. Scratch memory is the caller's, ideally 64-byte aligned for
// speed.
#pragma once

#include <cstdint>

#include "headrace/kernels/audio/real_fft.h"
#include "headrace/kernels/audio/sparse_rows.h"

namespace headrace {

struct Decibels {
  float multiplier = 10, least = 1e-10f, subtracted = 0;
};

// Operations on frames whose samples are in a block.
struct FrameConditioning {
  bool remove_mean = false;
  float preemphasis = 0;  // fraction of the previous sample that is subtracted from each sample
};

struct FrameKernels {
  int lanes;

  // block[j * stride + l] = from[l * hop + j] * weights[j] for `length` samples; null weights: all
  // are 1. May read up to 3 samples past the last one.
  void (*gather)(const float* from, int64_t hop, int length, const float* weights, float* block,
                 int64_t stride);
  // to[l * hop + j] = block[j * stride + l] for the first `frames` frames of `length` samples.
  void (*scatter)(const float* block, int64_t stride, int length, int frames, int64_t hop,
                  float* to);
  // Kaldi's frame preparation: subtract the mean, then preemphasize (the first sample counts as its
  // own predecessor) and multiply by the weights. raw_energies, energies: each lane's sum of
  // squares before and after the preemphasis and weights.
  void (*condition)(const FrameConditioning& how, const float* weights, int length,
                    float* raw_energies, float* energies, float* block);
  // Power spectra, one row per bin, in one of the two buffers, which is returned. REQUIRES:
  // fft.room() * lanes floats in each buffer; the samples are in `block`.
  float* (*powers)(const RealFft& fft, float* block, float* other);
  // out[m * out_stride + i] = sum of row m's weights times in[column * in_stride + i], i < count.
  // Terms at even and at odd positions of the row are summed separately, then added. May read
  // `lanes` - 1 elements past a row of `in`. A `count` of 4 * lanes costs little more than one of 2
  // * lanes.
  void (*weigh)(const SparseRows& rows, const float* in, int64_t in_stride, int count, float* out,
                int64_t out_stride);

  // Square roots of `count` values in a row; `in` and `out` may be the same. NaN stays NaN.
  void (*roots)(const float* in, int64_t count, float* out);
  // multiplier * log10(max(x, least)) - subtracted. REQUIRES: least is not denormal.
  void (*decibels)(const float* in, int64_t count, const Decibels& how, float* out);
  // ln(max(x, least)). REQUIRES: the same.
  void (*logarithms)(const float* in, int64_t count, float least, float* out);
  // The largest value, ignoring NaN. REQUIRES: count > 0.
  float (*largest)(const float* in, int64_t count);
  // (max(x, least) + added) * factor
  void (*raise)(const float* in, int64_t count, float least, float added, float factor, float* out);
};

// The kernels of the active SIMD level.
const FrameKernels& frame_kernels();

}  // namespace headrace
