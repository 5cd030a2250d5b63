// SPDX-License-Identifier: Apache-2.0
// ResamplePass: one axis of an antialiased resize of many 8-bit pictures, each with its own window
// and its own table. Two passes give what kernels/resample/resample.h gives, byte for byte: the
// weights are made by its code on the CPU, and the sums are the same integers. plan_resize() in
// resize_batch.h makes both.
#pragma once

#include <cstdint>

#include "headrace/base/host_device_function.h"
#include "headrace/kernels/batch/lanes.h"
#include "headrace/kernels/batch/picture_layout.h"

namespace headrace {

// A picture in a pass. Offsets and strides in bytes; the strides' `picture` is not used.
struct ResampleJob {
  int64_t from = 0, to = 0;  // the first sample
  PictureStrides from_strides = {}, to_strides = {};
  int32_t rows = 0, columns = 0;  // of the outcome
  int32_t vertical = 0;           // 1: along the rows' numbers, 0: along a row
  // Where this axis' numbers begin in ResamplePass::tables: first[outputs], count[outputs],
  // weights[taps][outputs].
  int64_t table = 0;
};

struct ResamplePass {
  const ResampleJob* jobs = nullptr;  // [count]; these three lie where the kernel runs
  const int32_t* tables = nullptr;
  const uint8_t* from = nullptr;
  uint8_t* to = nullptr;  // must not overlap `from`
  int64_t count = 0;
  int32_t channels = 1;
  int32_t most_rows = 0;  // of any job

  HEADRACE_HD int64_t items() const { return count * most_rows; }

  HEADRACE_HD void operator()(int64_t item, Lane lane) const {
    const int64_t i = item / most_rows;
    const int64_t y = item - i * most_rows;
    const ResampleJob& job = jobs[i];
    if (y >= job.rows) return;
    for (int c = 0; c < channels; ++c) {
      const uint8_t* const in = from + job.from + c * job.from_strides.channel;
      uint8_t* const out = to + job.to + c * job.to_strides.channel + y * job.to_strides.row;
      if (job.vertical) {
        vertical(job, y, in, out, lane);
      } else {
        horizontal(job, in + y * job.from_strides.row, out, lane);
      }
    }
  }

 private:
  HEADRACE_HD static uint8_t clipped(int32_t sum) {
    const int32_t value = sum >> 22;
    return static_cast<uint8_t>(value < 0 ? 0 : value < 255 ? value : 255);
  }

  HEADRACE_HD void horizontal(const ResampleJob& job, const uint8_t* in, uint8_t* out,
                              Lane lane) const {
    const int32_t* const first = tables + job.table;
    const int32_t* const count = first + job.columns;
    const int32_t* const weights = count + job.columns;
    for (int64_t x = lane.number; x < job.columns; x += lane.count) {
      const uint8_t* const samples = in + first[x] * job.from_strides.column;
      int32_t sum = 1 << 21;
      for (int64_t tap = 0; tap < count[x]; ++tap) {
        sum += samples[tap * job.from_strides.column] * weights[tap * job.columns + x];
      }
      out[x * job.to_strides.column] = clipped(sum);
    }
  }

  HEADRACE_HD void vertical(const ResampleJob& job, int64_t y, const uint8_t* in, uint8_t* out,
                            Lane lane) const {
    const int32_t* const first = tables + job.table;
    const int32_t taps = first[job.rows + y];
    const int32_t* const weights = first + 2 * int64_t{job.rows} + y;
    const uint8_t* const rows = in + first[y] * job.from_strides.row;
    for (int64_t x = lane.number; x < job.columns; x += lane.count) {
      const uint8_t* const samples = rows + x * job.from_strides.column;
      int32_t sum = 1 << 21;
      for (int64_t tap = 0; tap < taps; ++tap) {
        sum += samples[tap * job.from_strides.row] * weights[tap * job.rows];
      }
      out[x * job.to_strides.column] = clipped(sum);
    }
  }
};

}  // namespace headrace
