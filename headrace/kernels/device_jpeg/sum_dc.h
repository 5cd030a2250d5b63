// SPDX-License-Identifier: Apache-2.0
// DC differences -> DC values: sums along a stretch of MCUs, from the values before it.
#pragma once

#include <cstdint>

#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/device_jpeg/device_picture.h"

namespace headrace {

struct SumDc {
  const DevicePicture* pictures = nullptr;
  const RowJob* jobs = nullptr;
  int16_t* coefficients = nullptr;
  uint8_t* refused = nullptr;  // a flag a picture: a value left 16 bits
  int64_t count = 0;

  HEADRACE_HD int64_t items() const { return count; }

  HEADRACE_HD void operator()(int64_t item) const {
    const RowJob& job = jobs[item];
    const DevicePicture& picture = pictures[job.picture];
    int32_t before[3] = {job.predictor[0], job.predictor[1], job.predictor[2]};
    int32_t blocks[3] = {0, 0, 0};
    for (int c = 0; c < 3; ++c) {
      const DevicePlane& plane = picture.plane[c];
      if (c < picture.components) blocks[c] = 1 << (plane.h_shift + plane.v_shift);
    }
    bool leaves = false;
    int16_t* at = coefficients + job.first_block * 64;
    HEADRACE_ROLLED
    for (uint32_t mcu = 0; mcu < job.mcus; ++mcu) {
      for (int c = 0; c < 3; ++c) {
        HEADRACE_ROLLED
        for (int32_t i = 0; i < blocks[c]; ++i, at += 64) {
          before[c] += *at;
          leaves |= before[c] != static_cast<int16_t>(before[c]);
          *at = static_cast<int16_t>(before[c]);
        }
      }
    }
    if (leaves) words::raise(refused + job.picture);
  }
};

}  // namespace headrace
