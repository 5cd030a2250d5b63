// SPDX-License-Identifier: Apache-2.0
// FillBorders: fills the whole picture with one value per channel; each thread fills eight adjacent
// columns of a few rows. The passes of the resize then overwrite the visible part.
#pragma once

#include "headrace/kernels/batch/resample_job.h"

namespace headrace {

struct FillBorders : ResamplePass {
  static constexpr int kRows = 16;  // per thread
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
    const OutcomeStore<2> store(job, x);
    HEADRACE_ROLLED
    for (int32_t c = 0; c < channels; ++c) {
      const uint32_t four = (job.fill >> 8 * c & 255) * 0x01010101;
      uint8_t* out = to + job.to + c * job.to_strides.channel + begin * job.to_strides.row +
                     x * job.to_strides.column;
      HEADRACE_ROLLED
      for (int32_t y = begin; y < end; ++y, out += job.to_strides.row) store(out, {{four, four}});
    }
  }
};

}  // namespace headrace
