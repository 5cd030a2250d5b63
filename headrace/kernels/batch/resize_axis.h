// SPDX-License-Identifier: Apache-2.0
// One axis of a resize as the kernels read it: which inputs contribute to an output, and with which
// weights, in 22-bit fixed point and bit for bit as in kernels/resample/resample.h.
//
// The host describes an axis in a hundred bytes; MakeResizeTables computes the tables on the
// device. That is exact because the weights of box, bilinear and bicubic are made by additions,
// multiplications and divisions of doubles, which a GPU rounds like a CPU. Weights of filters with
// a sine, and the weights of torch, are made on the host and only reordered.
#pragma once

#include <cstdint>

#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/resample/filter.h"

namespace headrace {

// Format of an axis' tables, by the kernel that reads them.
enum class AxisForm : uint8_t {
  // ResampleRows: `padded` first inputs; then, for every four taps, three times `padded` words:
  // bytes 0, 1 and 2 of the weights of an output's four taps. Byte 2 is signed.
  kAlongRows,
  // ResampleColumns: for each output its first input, its number of inputs, and for every two taps
  // one word with the lower 16 bits of their weights and one with the upper 16 bits, which are
  // signed. If the count is odd, one more input must be readable.
  kAcrossRows,
};

// Outputs [begin, begin + count) of a full resize, or the same in reverse order.
struct ResizeAxis {
  FilterScale scale = {};
  int32_t begin = 0, count = 0;
  int32_t mirrored = 0;  // the input is stored from its last sample to its first
  int32_t reversed = 0;
  int32_t low = 0, samples = 0;  // the inputs that are read; the tables count from `low`
  int32_t taps = 0;              // maximum number of taps of any output
  int32_t padded = 0;            // `count`, rounded up to a multiple of 4
  int64_t table = 0;             // offset of its tables among all tables, in words
  // Position of the weights computed by the host: first[count], count[count], weights[taps][count];
  // -1: computed on the device.
  int64_t made = -1;
  AxisForm form = AxisForm::kAlongRows;

  // Steps of four taps, or of two.
  HEADRACE_HD int32_t steps() const {
    return form == AxisForm::kAlongRows ? (taps + 3) / 4 : (taps + 1) / 2;
  }
  HEADRACE_HD int64_t words() const {
    return form == AxisForm::kAlongRows ? int64_t{padded} * (1 + 3 * steps())
                                        : (int64_t{count} * across_stride() + 3) / 4 * 4;
  }
  HEADRACE_HD int32_t across_stride() const { return 2 + 2 * steps(); }
};

// Builds an axis' tables, one thread per output.
struct MakeResizeTables {
  const ResizeAxis* axes = nullptr;  // [count]
  const int32_t* made = nullptr;
  uint32_t* tables = nullptr;
  int64_t count = 0;
  int32_t max_outputs = 0;  // maximum of `padded` over all axes, rounded up to a multiple of 32

  HEADRACE_HD int64_t items() const { return count * max_outputs; }

  HEADRACE_HD void operator()(int64_t item) const {
    const uint32_t number = static_cast<uint32_t>(item) / static_cast<uint32_t>(max_outputs);
    const int32_t i = static_cast<int32_t>(static_cast<uint32_t>(item) - number * max_outputs);
    const ResizeAxis& axis = axes[number];
    if (i >= axis.padded) return;
    // Padding outputs repeat the last one, with zero weights.
    const int32_t own = i < axis.count ? i : axis.count - 1;
    if (axis.made >= 0) {
      const int32_t* const first = made + axis.made;
      const int32_t* const weights = first + 2 * int64_t{axis.count} + own;
      write(axis, i, first[own], first[axis.count + own],
            [&](int32_t tap) { return weights[int64_t{tap} * axis.count]; });
      return;
    }
    const FilterScale& scale = axis.scale;
    const FilterSpan span =
        scale.antialiased_span(axis.begin + (axis.reversed ? axis.count - 1 - own : own));
    const auto weight = [&](int32_t tap) {
      return polynomial_weight(scale.filter,
                               (tap + span.first - span.center + 0.5) * scale.inverse);
    };
    double sum = 0;
    HEADRACE_ROLLED
    for (int32_t tap = 0; tap < span.count; ++tap) sum += weight(tap);
    const int32_t first = axis.mirrored ? scale.input - span.first - span.count : span.first;
    write(axis, i, first - axis.low, span.count, [&](int32_t tap) {
      double share = weight(axis.mirrored ? span.count - 1 - tap : tap);
      if (sum != 0) share /= sum;
      return static_cast<int32_t>((share < 0 ? -0.5 : 0.5) + share * (1 << 22));
    });
  }

 private:
  template <class WeightOf>
  HEADRACE_HD void write(const ResizeAxis& axis, int32_t i, int32_t first, int32_t count,
                         const WeightOf& weight_of) const {
    uint32_t* const table = tables + axis.table;
    const int32_t steps = axis.steps();
    if (i >= axis.count) count = 0;
    const auto weight = [&](int32_t tap) {
      return tap < count ? static_cast<uint32_t>(weight_of(tap)) : 0;
    };
    if (axis.form == AxisForm::kAlongRows) {
      table[i] = static_cast<uint32_t>(first);
      HEADRACE_ROLLED
      for (int32_t step = 0; step < steps; ++step) {
        uint32_t bytes[3] = {};
        HEADRACE_ROLLED
        for (int32_t k = 0; k < 4; ++k) {
          const uint32_t bits = weight(4 * step + k);
          for (int b = 0; b < 3; ++b) bytes[b] |= (bits >> 8 * b & 255) << 8 * k;
        }
        uint32_t* const to = table + int64_t{axis.padded} * (1 + 3 * step) + i;
        for (int b = 0; b < 3; ++b) to[int64_t{axis.padded} * b] = bytes[b];
      }
    } else if (i < axis.count) {
      // An odd count reads one more input, with zero weight: after the last one, or before the
      // first if there is none after.
      const int32_t above = count % 2 && first > 0 && first + count == axis.samples ? 1 : 0;
      uint32_t* to = table + int64_t{i} * axis.across_stride();
      to[0] = static_cast<uint32_t>(first - above);
      to[1] = static_cast<uint32_t>(count + above);
      HEADRACE_ROLLED
      for (int32_t tap = -above; tap < 2 * steps - above; tap += 2) {
        const uint32_t upper = tap < 0 ? 0 : weight(tap), lower = weight(tap + 1);
        to += 2;
        to[0] = (upper & 0xffff) | lower << 16;
        to[1] = upper >> 16 | (lower & 0xffff0000);
      }
    }
  }
};

}  // namespace headrace
