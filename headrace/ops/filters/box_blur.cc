// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/filters/box_blur.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "headrace/kernels/rows.h"

namespace headrace {
namespace {

constexpr int kPasses = 3;

// Gwosdek et al., Theoretical Foundations of Gaussian Convolution by Extended Box Filtering, 2011,
// in float32 as Pillow has it.
float box_radius(float radius) {
  const float variance = radius * radius / kPasses;
  const auto length = static_cast<float>(std::sqrt(12.0 * variance + 1.0));
  const auto whole = static_cast<float>(std::floor((length - 1.0) / 2.0));
  float rest = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  rest /= 6 * (variance - (whole + 1) * (whole + 1));
  return whole + rest;
}

// A box that reaches `whole` pixels to either side, and a part of the next ones.
class Box {
 public:
  explicit Box(float radius) : whole_(static_cast<int>(radius)) {
    constexpr uint32_t kOne = 1 << 24;
    weight_ = static_cast<uint32_t>(static_cast<float>(kOne) / (radius * 2 + 1));
    end_weight_ = (kOne - static_cast<uint32_t>(whole_ * 2 + 1) * weight_) / 2;
  }

  // The first and the last pixel go on beyond the ends.
  void rows(uint8_t* plane, int width, int height) {
    const int reach = whole_ + 1;
    padded_.resize(size_t(width) + 2 * size_t(reach));
    uint8_t* const line = padded_.data() + reach;
    for (int y = 0; y < height; ++y, plane += width) {
      for (int pass = 0; pass < kPasses; ++pass) {
        std::memcpy(line, plane, size_t(width));
        std::fill_n(padded_.data(), reach, plane[0]);
        std::fill_n(line + width, reach, plane[width - 1]);
        uint32_t sum = 0;
        for (int i = -whole_; i <= whole_; ++i) sum += line[i];
        for (int x = 0; x < width; ++x) {
          const uint32_t ends = uint32_t{line[x - reach]} + line[x + reach];
          plane[x] = static_cast<uint8_t>((sum * weight_ + ends * end_weight_ + (1u << 23)) >> 24);
          sum += uint32_t{line[x + reach]} - line[x - whole_];
        }
      }
    }
  }

 private:
  int whole_;
  uint32_t weight_, end_weight_;
  std::vector<uint8_t> padded_;
};

}  // namespace

Picture blurred_as_pillow(const Picture& picture, double radius) {
  Picture out(picture.channels, picture.height, picture.width, picture.dtype);
  const int width = picture.width, height = picture.height;
  std::memcpy(out.pixels.data(), picture.pixels.data(), picture.pixels.size());
  Box box(box_radius(static_cast<float>(radius)));
  Buffer turned(picture.plane_bytes());
  for (int c = 0; c < picture.channels; ++c) {
    box.rows(out.plane(c), width, height);
    transpose_plane(out.plane(c), width, width, height, turned.data(), height);
    box.rows(turned.data(), height, width);
    transpose_plane(turned.data(), height, height, width, out.plane(c), width);
  }
  return out;
}

}  // namespace headrace
