// SPDX-License-Identifier: Apache-2.0
// A device's tables for an axis of a resize, compared with the CPU's.
#include "headrace/kernels/batch/resize_axis.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headrace/kernels/batch/launch.h"
#include "headrace/kernels/batch/resize_batch.h"
#include "headrace/kernels/resample/resample.h"

namespace headrace {
namespace {

// The inputs of one output, unpacked from the words that the kernels read.
struct Taps {
  int first = 0;
  std::vector<int32_t> weights;
};

Taps taps_of(const ResizeAxis& axis, const uint32_t* table, int i) {
  Taps taps;
  if (axis.form == AxisForm::kAlongRows) {
    taps.first = int(table[i]);
    for (int tap = 0; tap < 4 * axis.steps(); ++tap) {
      const auto byte = [&](int b) {
        return table[size_t(axis.padded) * (1 + 3 * (tap / 4) + b) + i] >> 8 * (tap % 4) & 255;
      };
      taps.weights.push_back(int32_t(byte(0) | byte(1) << 8) + int8_t(byte(2)) * 65536);
    }
  } else {
    const uint32_t* const numbers = table + size_t(i) * axis.across_stride();
    taps.first = int(numbers[0]);
    for (int tap = 0; tap < int(numbers[1]); ++tap) {
      const uint32_t *const two = numbers + 2 + tap / 2 * 2, shift = 16 * (tap % 2);
      taps.weights.push_back(int32_t(two[0] >> shift & 0xffff) + int16_t(two[1] >> shift) * 65536);
    }
  }
  while (!taps.weights.empty() && taps.weights.back() == 0) taps.weights.pop_back();
  while (!taps.weights.empty() && taps.weights.front() == 0) {
    taps.weights.erase(taps.weights.begin());
    ++taps.first;
  }
  return taps;
}

Taps taps_of(const ResampleAxis& axis, int i) {
  if (axis.copies()) return {i, {1 << 22}};
  Taps taps{axis.first(i), {}};
  for (int tap = 0; tap < axis.count(i); ++tap) taps.weights.push_back(axis.weight(i, tap));
  while (!taps.weights.empty() && taps.weights.back() == 0) taps.weights.pop_back();
  while (!taps.weights.empty() && taps.weights.front() == 0) {
    taps.weights.erase(taps.weights.begin());
    ++taps.first;
  }
  return taps;
}

// Square pictures of each input size are resized to `output` x `output`.
void expect_the_cpus_numbers(Filter filter, const std::vector<int>& inputs, int output) {
  std::vector<ResizeWindow> windows;
  for (const int input : inputs) windows.push_back({.height = input, .width = input});
  const ResizePlan plan =
      plan_resize({.filter = filter,
                   .height = output,
                   .width = output,
                   .strides = PictureStrides::channels_first(3, output, output)},
                  windows);
  std::vector<uint32_t> tables(size_t(plan.table_words), 0xa5a5a5a5);
  const MakeResizeTables kernel{.axes = plan.axes.data(),
                                .made = plan.made.data(),
                                .tables = tables.data(),
                                .count = int64_t(plan.axes.size()),
                                .max_outputs = plan.max_outputs};
  run_items(kernel, 0, kernel.items());
  ASSERT_EQ(plan.axes.size(), 2 * inputs.size());
  ResampleAxis cpu;
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    const ResizeAxis& axis = plan.axes[i];
    cpu.make(filter, inputs[i / 2], output, 0, output, false, false);
    for (int at = 0; at < output; ++at) {
      const Taps ours = taps_of(axis, tables.data() + axis.table, at), expected = taps_of(cpu, at);
      ASSERT_EQ(ours.first, expected.first)
          << int(filter) << ": " << inputs[i / 2] << " -> " << output << " at " << at;
      ASSERT_EQ(ours.weights, expected.weights)
          << int(filter) << ": " << inputs[i / 2] << " -> " << output << " at " << at;
    }
  }
}

std::vector<int> sizes(int first, int last, int step = 1) {
  std::vector<int> all;
  for (int size = first; size <= last; size += step) all.push_back(size);
  return all;
}

TEST(ResizeAxis, EqualsTheCpusTablesForEverySizeUpTo72) {
  for (int filter = 0; filter < 10; ++filter) {
    for (int output = 1; output <= 72; ++output) {
      expect_the_cpus_numbers(Filter(filter), sizes(1, 72), output);
    }
  }
}

TEST(ResizeAxis, EqualsTheCpusTablesForEverySizeOfAPhoto) {
  for (const Filter filter : {Filter::kBox, Filter::kBilinear, Filter::kBicubic}) {
    for (const int output : {224, 256}) {
      expect_the_cpus_numbers(filter, sizes(1, 700), output);
      expect_the_cpus_numbers(filter, sizes(701, 8000, 331), output);
    }
  }
}

}  // namespace
}  // namespace headrace
