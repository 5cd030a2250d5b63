// SPDX-License-Identifier: Apache-2.0
// ResampleRows: the horizontal pass of a resize; each thread computes four adjacent columns of a
// few rows, in all channels, so that positions and weights are loaded once. A weighted sum is split
// into three sums of byte products, four per instruction: with weights of 23 bits and a sign, sum =
// s0 + (s1 << 8) + (s2 << 16), exactly.
#pragma once

#include "headrace/kernels/batch/resample_job.h"

namespace headrace {

template <SampleLayout kLayout>
struct ResampleRows : ResamplePass {
  // With more, some values spill to memory.
  static constexpr int kResidentBlocks = kLayout == SampleLayout::kWords ? 6 : 4;
  static constexpr int kRows = 16;  // per thread
  static constexpr int kColumns = 4;

  // Number of threads for a job.
  static int64_t threads(const ResampleJob& job) {
    return int64_t{(job.rows + kRows - 1) / kRows} * ((job.columns + kColumns - 1) / kColumns);
  }

  HEADRACE_HD void operator()(int64_t item) const {
    const ResamplePiece& piece = pieces[item / kResamplePiece];
    const ResampleJob& job = jobs[piece.job];
    const uint32_t number = piece.first + static_cast<uint32_t>(item % kResamplePiece);
    const uint32_t fours = static_cast<uint32_t>(job.columns + kColumns - 1) / kColumns;
    const uint32_t group = number / fours;
    const int32_t begin = static_cast<int32_t>(group * kRows);
    const int32_t end = begin + kRows < job.rows ? begin + kRows : job.rows;
    if (begin >= end) return;
    const int32_t x = static_cast<int32_t>(number - group * fours) * kColumns;
    const ResizeAxis& axis = axes[job.axis];
    const int32_t padded = axis.padded, steps = axis.steps();
    const uint32_t* const table = tables + axis.table + x;
    const Places places(job, table);
    if (steps == 1) {
      const Weights weights(table + padded, padded);
      each_row(job, begin, end, x, [&](const uint8_t* row, uint32_t(&sums)[kColumns]) {
        HEADRACE_UNROLLED
        for (int i = 0; i < kColumns; ++i) {
          const uint32_t four = places.four(row, i);
          // weights are in units of 2^-16
          uint32_t sum = words::dot4_signed(four, weights.byte[2].word[i], 1 << 5);
          sum = words::dot4(four, weights.byte[1].word[i], sum << 8);
          sums[i] = words::dot4(four, weights.byte[0].word[i], sum << 8);
        }
      });
    } else {
      each_row(job, begin, end, x, [&](const uint8_t* row, uint32_t(&sums)[kColumns]) {
        uint32_t by_byte[3][kColumns] = {};
        const uint32_t* from_weights = table + padded;
        HEADRACE_ROLLED
        for (int32_t step = 0; step < steps; ++step, from_weights += 3 * int64_t{padded}) {
          const Weights weights(from_weights, padded);
          HEADRACE_UNROLLED
          for (int i = 0; i < kColumns; ++i) {
            const uint32_t four = places.four(row, i, static_cast<uint32_t>(step));
            by_byte[0][i] = words::dot4(four, weights.byte[0].word[i], by_byte[0][i]);
            by_byte[1][i] = words::dot4(four, weights.byte[1].word[i], by_byte[1][i]);
            by_byte[2][i] = words::dot4_signed(four, weights.byte[2].word[i], by_byte[2][i]);
          }
        }
        HEADRACE_UNROLLED
        for (int i = 0; i < kColumns; ++i) {
          sums[i] = (1 << 21) + by_byte[0][i] + (by_byte[1][i] << 8) + (by_byte[2][i] << 16);
        }
      });
    }
  }

 private:
  // Weights of four outputs, four taps each.
  struct Weights {
    words::Together<4> byte[3];
    HEADRACE_HD Weights(const uint32_t* from, int32_t padded) {
      HEADRACE_UNROLLED
      for (int b = 0; b < 3; ++b) byte[b] = words::load<4>(from + int64_t{padded} * b);
    }
  };

  // Positions of four outputs' samples in a row.
  class Places {
   public:
    HEADRACE_HD Places(const ResampleJob& job, const uint32_t* first) {
      const words::Together<4> firsts = words::load<4>(first);
      if constexpr (kLayout == SampleLayout::kWords) {
        const uint32_t before = static_cast<uint32_t>(job.from) & 7;
        const uint32_t words = (before + static_cast<uint32_t>(job.samples) + 3) / 4;
        last_ = words > 2 ? words - 2 : 0;
        HEADRACE_UNROLLED
        for (int i = 0; i < kColumns; ++i) {
          const uint32_t at = before + firsts.word[i];
          first_[i] = at / 4 < last_ ? at / 4 : last_;
          which_[i] = 0x3210 + 0x1111 * (at - first_[i] * 4);
        }
      } else {
        step_ = job.from_strides.column;
        last_ = static_cast<uint32_t>(job.samples) - 1;
        HEADRACE_UNROLLED
        for (int i = 0; i < kColumns; ++i) first_[i] = firsts.word[i];
      }
    }

    // The samples of output i's first four taps; samples past its last tap may have any value.
    HEADRACE_HD uint32_t four(const uint8_t* row, int i) const {
      if constexpr (kLayout == SampleLayout::kWords) {
        return chosen(row, first_[i], which_[i]);
      } else {
        return four(row, i, 0);
      }
    }
    // The four bytes of a step.
    HEADRACE_HD uint32_t four(const uint8_t* row, int i, uint32_t step) const {
      if constexpr (kLayout == SampleLayout::kWords) {
        // From bytes of the last two words, if the step's words are not both in the row.
        const uint32_t wanted = first_[i] + step, at = wanted < last_ ? wanted : last_;
        return chosen(row, at, which_[i] + 0x4444 * (wanted - at));
      } else {
        uint32_t bytes = 0;
        HEADRACE_UNROLLED
        for (uint32_t k = 0; k < 4; ++k) {
          const uint32_t wanted = first_[i] + 4 * step + k, at = wanted < last_ ? wanted : last_;
          bytes |= uint32_t{row[int64_t{at} * step_]} << 8 * k;
        }
        return bytes;
      }
    }

   private:
    HEADRACE_HD static uint32_t chosen(const uint8_t* row, uint32_t word, uint32_t which) {
      const uint32_t* const two = words::word_at(row, word);
      return words::chosen_bytes(words::load<1>(two).word[0], words::load<1>(two + 1).word[0],
                                 which);
    }

    // Positions of words in a row, and which bytes of two of them; or positions of samples.
    uint32_t first_[kColumns], which_[kColumns];
    uint32_t last_;  // last readable position: the first of two words, or a sample
    int64_t step_ = 1;
  };

  // Calls sums_of(row, sums) for each row and channel, and stores the rounded sums.
  template <class SumsOf>
  HEADRACE_HD void each_row(const ResampleJob& job, int32_t begin, int32_t end, int32_t x,
                            const SumsOf& sums_of) const {
    constexpr int64_t kDown = kLayout == SampleLayout::kWords ? ~int64_t{7} : ~int64_t{0};
    const int64_t from_step = job.from_strides.row, to_step = job.to_strides.row;
    const OutcomeStore<1> store(job, x);
    HEADRACE_ROLLED
    for (int32_t c = 0; c < channels; ++c) {
      const uint8_t* in =
          from + (job.from & kDown) + c * job.from_strides.channel + begin * from_step;
      uint8_t* out =
          to + job.to + c * job.to_strides.channel + begin * to_step + x * job.to_strides.column;
      HEADRACE_ROLLED
      for (int32_t y = begin; y < end; ++y, in += from_step, out += to_step) {
        uint32_t sums[kColumns];
        sums_of(in, sums);
        const auto value = [&](int i) { return static_cast<int32_t>(sums[i]) >> 22; };
        store(out, {words::clamped_bytes(value(0), value(1), value(2), value(3))});
      }
    }
  }
};

}  // namespace headrace
