// SPDX-License-Identifier: Apache-2.0
// Computations on the frames of a signal, for as many frames at a time as a register has lanes:
// a block has sample j of its frames side by side, at j * lanes. So a transform of any length, and
// any weighted sum of a frame's samples, is a loop without a shuffle, and one text is the loop of
// every level: all give the same bytes.
//
//     signal ──gather──> samples of a block ──powers──> its spectra ──weigh──> bands, a row each
//
// Any thread may call them. What a kernel keeps is in buffers of the caller, 64-byte aligned where
// that is to be fast.
#pragma once

#include <cstdint>

#include "headrace/kernels/audio/real_fft.h"
#include "headrace/kernels/audio/sparse_rows.h"

namespace headrace {

struct Decibels {
  float multiplier = 10, least = 1e-10f, subtracted = 0;
};

// For frames whose samples are in a block.
struct FrameConditioning {
  bool remove_mean = false;
  float preemphasis = 0;  // of each sample, the share of the one before it that is subtracted
};

struct FrameKernels {
  int lanes;

  // block[j * stride + l] = from[l * hop + j] * weights[j], of `length` samples; weights: null
  // for 1. May read up to 3 samples further.
  void (*gather)(const float* from, int64_t hop, int length, const float* weights, float* block,
                 int64_t stride);
  // to[l * hop + j] = block[j * stride + l], of `length` samples and the first frames.
  void (*scatter)(const float* block, int64_t stride, int length, int frames, int64_t hop,
                  float* to);
  // As Kaldi prepares a frame: less its mean; less a share of the sample before (of the first: of
  // itself), times the weights. The sum of squares of each lane after either.
  void (*condition)(const FrameConditioning& how, const float* weights, int length,
                    float* raw_energies, float* energies, float* block);
  // Squares of the absolute values of the spectra, a row a bin, in one of the two buffers, which is
  // returned. REQUIRES: fft.room() * lanes floats in each; the samples are in `block`.
  float* (*powers)(const RealFft& fft, float* block, float* other);
  // out[m * out_stride + i] = sum of row m's weights times in[column * in_stride + i], i < count:
  // the sum of those at even places of the row, plus that of those at odd ones. May read `lanes` -
  // 1 past a row of `in`. Four times `lanes` side by side cost little more than two.
  void (*weigh)(const SparseRows& rows, const float* in, int64_t in_stride, int count, float* out,
                int64_t out_stride);

  // Roots of `count` values in a row, from `in` to `out`, which may be the same. NaN stays NaN.
  void (*roots)(const float* in, int64_t count, float* out);
  // multiplier * log10(max(x, least)) - subtracted. REQUIRES: least is no denormal number.
  void (*decibels)(const float* in, int64_t count, const Decibels& how, float* out);
  // ln(max(x, least)). REQUIRES: the same.
  void (*logarithms)(const float* in, int64_t count, float least, float* out);
  // The largest; what is NaN does not count. REQUIRES: count > 0.
  float (*largest)(const float* in, int64_t count);
  // (max(x, least) + added) * factor
  void (*raise)(const float* in, int64_t count, float least, float added, float factor, float* out);
};

// The kernels of the level in force.
const FrameKernels& frame_kernels();

}  // namespace headrace
