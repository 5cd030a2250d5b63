// SPDX-License-Identifier: Apache-2.0
// A window of a batch, resized with the CPU's weights and plain loops; for tests and fuzzing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "headrace/kernels/batch/resize_batch.h"
#include "headrace/kernels/resample/resample.h"

namespace headrace {

// One channel of a window as the CPU resizes it. REQUIRES: all of its sizes are set.
inline std::vector<uint8_t> part_on_cpu(const ResizeTo& to, const ResizeWindow& window,
                                        const std::vector<uint8_t>& pictures, int channel) {
  const int height = window.shown_height, width = window.shown_width;
  ResampleAxis across, down;
  across.make(to.filter, window.width, window.to_width, window.left, window.left + width, false,
              window.flip);
  down.make(to.filter, window.height, window.to_height, window.top, window.top + height, false,
            window.upside_down);
  const auto taps_of = [](const ResampleAxis& axis, int i, auto&& take) {
    if (axis.copies()) {
      take(axis.mirrored() ? axis.high() - 1 - i : axis.low() + i, 1 << 22);
      return;
    }
    for (int tap = 0; tap < axis.count(i); ++tap) {
      take(axis.low() + axis.first(i) + tap, axis.weight(i, tap));
    }
  };
  const auto pass = [&](const ResampleAxis& axis, int outputs, int lines, auto&& in) {
    std::vector<uint8_t> out(size_t(outputs) * lines);
    for (int line = 0; line < lines; ++line) {
      for (int i = 0; i < outputs; ++i) {
        int32_t sum = 1 << 21;
        taps_of(axis, i, [&](int at, int32_t weight) { sum += in(line, at) * weight; });
        out[size_t(line) * outputs + i] = uint8_t(std::clamp(sum >> 22, 0, 255));
      }
    }
    return out;
  };
  const auto sample = [&](int y, int x) {
    return pictures[size_t(window.from + y * window.strides.row + x * window.strides.column +
                           channel * window.strides.channel)];
  };
  if (vertical_first(to.filter, window.width, window.height, window.to_width, window.to_height)) {
    const auto high = pass(down, height, window.width, [&](int x, int y) { return sample(y, x); });
    return pass(across, width, height, [&](int y, int x) { return high[size_t(x) * height + y]; });
  }
  const auto wide = pass(across, width, window.height, sample);
  const auto turned =
      pass(down, height, width, [&](int x, int y) { return wide[size_t(y) * width + x]; });
  std::vector<uint8_t> out(turned.size());
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) out[size_t(y) * width + x] = turned[size_t(x) * height + y];
  }
  return out;
}

// One channel of the batch's picture: the same, with its border.
inline std::vector<uint8_t> resized_on_cpu(const ResizeTo& to, ResizeWindow window,
                                           const std::vector<uint8_t>& pictures, int channel) {
  std::vector<uint8_t> out(size_t(to.height) * to.width, window.fill[size_t(channel)]);
  if (window.border_alone) return out;
  if (window.shown_height == 0) window.shown_height = to.height;
  if (window.shown_width == 0) window.shown_width = to.width;
  if (window.to_height == 0) window.to_height = window.shown_height;
  if (window.to_width == 0) window.to_width = window.shown_width;
  const auto part = part_on_cpu(to, window, pictures, channel);
  for (int y = 0; y < window.shown_height; ++y) {
    std::copy_n(part.begin() + ptrdiff_t(y) * window.shown_width, window.shown_width,
                out.begin() + ptrdiff_t(window.at_top + y) * to.width + window.at_left);
  }
  return out;
}

}  // namespace headrace
