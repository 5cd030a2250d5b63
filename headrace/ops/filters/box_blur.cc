// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/kernels/filters/filter_rows.h"
#include "headrace/kernels/rows.h"
#include "headrace/ops/filters/blurs.h"

namespace headrace {
namespace {

constexpr int kPasses = 3;

// Gwosdek et al., Theoretical Foundations of Gaussian Convolution by Extended Box Filtering, 2011,
// in float32 as in Pillow.
float box_radius(float radius) {
  const float variance = radius * radius / kPasses;
  const auto length = static_cast<float>(std::sqrt(12.0 * variance + 1.0));
  const auto whole = static_cast<float>(std::floor((length - 1.0) / 2.0));
  float rest = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  rest /= 6 * (variance - (whole + 1) * (whole + 1));
  return whole + rest;
}

// Runs the passes over a strip of columns, which fits in the cache. For horizontal passes, rows are
// transposed into columns of strips.
class Strip {
 public:
  Strip(const BoxWeights& weights, int longest) : weights_(weights) {
    const size_t size = size_t(longest) * kBoxColumns;
    of_[0].resize(size);
    of_[1].resize(size);
    std::memset(of_[0].data(), 0, size);  // a narrower strip leaves the rest unused
  }

  // In place.
  void columns(uint8_t* plane, int width, int height) {
    for (int x = 0; x < width; x += kBoxColumns) {
      const auto count = size_t(std::min(kBoxColumns, width - x));
      for (int y = 0; y < height; ++y) {
        std::memcpy(row(0, y), plane + size_t(y) * size_t(width) + x, count);
      }
      filter(height);
      for (int y = 0; y < height; ++y) {
        std::memcpy(plane + size_t(y) * size_t(width) + x, row(1, y), count);
      }
    }
  }
  void rows(uint8_t* plane, int width, int height) {
    for (int y = 0; y < height; y += kBoxColumns, plane += size_t(width) * kBoxColumns) {
      const int count = std::min(kBoxColumns, height - y);
      transpose_plane(plane, width, width, count, row(0, 0), kBoxColumns);
      filter(width);
      transpose_plane(row(1, 0), kBoxColumns, count, width, plane, width);
    }
  }

 private:
  static_assert(kPasses % 2 == 1, "input and output are in alternating buffers");

  uint8_t* row(int buffer, int y) { return of_[buffer].data() + size_t(y) * kBoxColumns; }
  void filter(int length) {
    for (int pass = 0; pass < kPasses; ++pass) {
      box_columns(row(pass % 2, 0), length, weights_, row((pass + 1) % 2, 0));
    }
  }

  const BoxWeights weights_;
  Buffer of_[2];
};

}  // namespace

void blur_as_pillow(const Picture& in, double radius, Picture& out) {
  std::memcpy(out.pixels.data(), in.pixels.data(), in.pixels.size());
  const BoxWeights weights = BoxWeights::of(box_radius(static_cast<float>(radius)));
  Strip strip(weights, std::max(in.width, in.height));
  for (int c = 0; c < in.channels; ++c) {
    strip.rows(out.plane(c), in.width, in.height);
    strip.columns(out.plane(c), in.width, in.height);
  }
}

}  // namespace headrace
