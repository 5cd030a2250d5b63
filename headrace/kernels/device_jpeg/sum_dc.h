// SPDX-License-Identifier: Apache-2.0
// DC differences -> DC values: prefix sums along a component of a segment of MCUs, starting from
// the DC value before the segment. The values are 128 bytes apart, so a thread is limited by memory
// latency, and loads eight values at a time. If the row index has the DC value after the segment,
// the sum must equal it.
#pragma once

#include <cstdint>

#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/device_jpeg/device_image.h"

namespace headrace {

struct SumDc {
  static constexpr int kComponents = 3, kAtOnce = 8;

  const DeviceImage* images = nullptr;
  const WalkGroup* groups = nullptr;
  const RowJob* jobs = nullptr;
  int16_t* coefficients = nullptr;
  uint8_t* refused = nullptr;  // one error flag per image: a value does not fit 16 bits
  int64_t group_count = 0;

  HEADRACE_HD int64_t items() const { return group_count * kComponents * WalkGroup::kMax; }

  HEADRACE_HD void operator()(int64_t item) const {
    const auto line = static_cast<uint32_t>(item / WalkGroup::kMax);
    const WalkGroup& group = groups[line / kComponents];
    const auto component = static_cast<int32_t>(line % kComponents);
    const uint32_t number = static_cast<uint32_t>(item) % WalkGroup::kMax;
    const DeviceImage& image = images[group.image];
    if (number >= group.jobs || component >= image.components) return;
    const DevicePlane& plane = image.plane[component];
    const RowJob& job = jobs[group.first_job + number];
    if (!sum(coefficients + (image.first_block + job.first_block + plane.first_block) * int64_t{64},
             plane.h_shift + plane.v_shift, image.blocks, job, component)) {
      words::raise(refused + group.image);
    }
  }

 private:
  // Sums up a component with 1 << shift adjacent blocks in each MCU of mcu_blocks blocks. Returns
  // false if a value does not fit 16 bits, or the last one is not the expected one.
  HEADRACE_HD static bool sum(int16_t* at, int32_t shift, int32_t mcu_blocks, const RowJob& job,
                              int32_t component) {
    constexpr uint32_t kBias = 1 << 15;  // with a bias, 16-bit values are those below 1 << 16
    // kAtOnce values at a time, from whole MCUs.
    int32_t place[kAtOnce];
    HEADRACE_UNROLLED
    for (int32_t i = 0; i < kAtOnce; ++i) {
      place[i] = ((i >> shift) * mcu_blocks + (i & ((1 << shift) - 1))) * 64;
    }
    const int64_t step = int64_t{kAtOnce >> shift} * mcu_blocks * 64;
    uint32_t value = static_cast<uint32_t>(job.predictor[component]) + kBias, all = value;
    HEADRACE_ROLLED
    for (int32_t left = job.mcus << shift; left > 0; left -= kAtOnce, at += step) {
      int16_t difference[kAtOnce];
      HEADRACE_UNROLLED
      for (int32_t i = 0; i < kAtOnce; ++i) {
        difference[i] = 0;
        if (i < left) difference[i] = at[place[i]];
      }
      HEADRACE_UNROLLED
      for (int32_t i = 0; i < kAtOnce; ++i) {
        value += static_cast<uint32_t>(difference[i]);
        all |= value;
        if (i < left) at[place[i]] = static_cast<int16_t>(value - kBias);
      }
    }
    const bool ends = static_cast<int16_t>(value - kBias) == job.end_predictor[component];
    return all >> 16 == 0 && (ends || job.slack > 0);
  }
};

}  // namespace headrace
