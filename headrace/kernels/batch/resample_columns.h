// SPDX-License-Identifier: Apache-2.0
// ResampleColumns: the vertical pass of a resize; each thread computes eight adjacent columns of a
// few output rows, in all channels, so that a row's weights are loaded once.
//
// A weighted sum is split into two sums, for the weights' lower and upper 16 bits, with two
// products per instruction: sum = s0 + (s1 << 16), exactly.
#pragma once

#include "headrace/kernels/batch/resample_job.h"

namespace headrace {

template <SampleLayout kLayout>
struct ResampleColumns : ResamplePass {
  static constexpr int kRows = 4;  // per thread
  static constexpr int kColumns = 8;

  // Number of threads for a job.
  static int64_t threads(const ResampleJob& job) {
    return int64_t{(job.rows + kRows - 1) / kRows} * ((job.columns + kColumns - 1) / kColumns);
  }

  HEADRACE_HD void operator()(int64_t item) const {
    const ResamplePiece& piece = pieces[item / kResamplePiece];
    const ResampleJob& job = jobs[piece.job];
    const uint32_t number = piece.first + static_cast<uint32_t>(item % kResamplePiece);
    const uint32_t eights = static_cast<uint32_t>(job.columns + kColumns - 1) / kColumns;
    const uint32_t group = number / eights;
    const int32_t begin = static_cast<int32_t>(group * kRows);
    const int32_t end = begin + kRows < job.rows ? begin + kRows : job.rows;
    const int32_t x = static_cast<int32_t>(number - group * eights) * kColumns;
    const ResizeAxis& axis = axes[job.axis];
    const int32_t stride = axis.across_stride();
    const Samples samples(job, x);
    const OutcomeStore<2> store(job, x);
    const uint8_t* const in = from + job.from + x * job.from_strides.column;
    const int64_t from_channel = job.from_strides.channel, to_channel = job.to_strides.channel;
    const int64_t to_row = job.to_strides.row;
    const uint32_t* numbers = tables + axis.table + int64_t{begin} * stride;
    uint8_t* out = to + job.to + begin * to_row + x * job.to_strides.column;
    HEADRACE_ROLLED
    for (int32_t y = begin; y < end; ++y, numbers += stride, out += to_row) {
      const words::Together<2> taps = words::load<2>(numbers);
      const int32_t count = static_cast<int32_t>(taps.word[1]);
      const uint8_t* row = in + static_cast<int32_t>(taps.word[0]) * samples.row;
      uint8_t* to_it = out;
      HEADRACE_ROLLED
      for (int32_t c = 0; c < channels; ++c, row += from_channel, to_it += to_channel) {
        Sums sums;
        sums.add(samples, row, count > 1, words::load<2>(numbers + 2));
        const uint8_t* next = row;
        HEADRACE_ROLLED
        for (int32_t tap = 2; tap < count; tap += 2) {
          next += 2 * samples.row;
          sums.add(samples, next, tap + 1 < count, words::load<2>(numbers + 2 + tap));
        }
        store(to_it, sums.outcomes());
      }
    }
  }

 private:
  // Eight samples of a row and of the row below.
  struct Samples {
    int64_t row;
    int64_t column;
    int32_t last;
    HEADRACE_HD Samples(const ResampleJob& job, int32_t x)
        : row(job.from_strides.row),
          column(job.from_strides.column),
          last((job.columns - x < kColumns ? job.columns - x : kColumns) - 1) {}

    HEADRACE_HD words::Together<2> eight(const uint8_t* at) const {
      if constexpr (kLayout == SampleLayout::kWords) {
        return words::load<2>(at);
      } else {
        words::Together<2> bytes = {};
        HEADRACE_UNROLLED
        for (int i = 0; i < kColumns; ++i) {
          bytes.word[i / 4] |= uint32_t{at[(i < last ? i : last) * column]} << 8 * (i % 4);
        }
        return bytes;
      }
    }
    // The row below; any row if it has no weight.
    HEADRACE_HD words::Together<2> eight_below(const uint8_t* at, bool has_weight) const {
      return eight(kLayout == SampleLayout::kWords || has_weight ? at + row : at);
    }
  };

  struct Sums {
    uint32_t low[kColumns], high[kColumns];

    HEADRACE_HD Sums() {
      HEADRACE_UNROLLED
      for (int i = 0; i < kColumns; ++i) low[i] = 1 << 21, high[i] = 0;
    }
    HEADRACE_HD void add(const Samples& samples, const uint8_t* row, bool two,
                         const words::Together<2>& by) {
      const words::Together<2> a = samples.eight(row), b = samples.eight_below(row, two);
      HEADRACE_UNROLLED
      for (int half = 0; half < 2; ++half) {
        const uint32_t left = words::chosen_bytes(a.word[half], b.word[half], 0x5140);
        const uint32_t right = words::chosen_bytes(a.word[half], b.word[half], 0x7362);
        const int i = half * 4;
        low[i] = words::dot2<false>(by.word[0], left, low[i]);
        low[i + 1] = words::dot2<true>(by.word[0], left, low[i + 1]);
        low[i + 2] = words::dot2<false>(by.word[0], right, low[i + 2]);
        low[i + 3] = words::dot2<true>(by.word[0], right, low[i + 3]);
        high[i] = words::dot2_signed<false>(by.word[1], left, high[i]);
        high[i + 1] = words::dot2_signed<true>(by.word[1], left, high[i + 1]);
        high[i + 2] = words::dot2_signed<false>(by.word[1], right, high[i + 2]);
        high[i + 3] = words::dot2_signed<true>(by.word[1], right, high[i + 3]);
      }
    }
    HEADRACE_HD words::Together<2> outcomes() const {
      const auto value = [&](int i) {
        return static_cast<int32_t>(low[i] + (high[i] << 16)) >> 22;
      };
      return {words::clamped_bytes(value(0), value(1), value(2), value(3)),
              words::clamped_bytes(value(4), value(5), value(6), value(7))};
    }
  };
};

}  // namespace headrace
