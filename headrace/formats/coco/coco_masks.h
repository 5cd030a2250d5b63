// SPDX-License-Identifier: Apache-2.0
// Rasterizes masks of COCO annotations, pixel for pixel as pycocotools does (maskApi.c: rleFrPoly,
// rleFrString, rleDecode). Run lengths in COCO are column-major; planes here are row-major.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// Draws into planes of one size; for one thread at a time. Each call sets pixels to 1, so several
// polygons give their union. Functions return the error in the shape, or an empty string.
class CocoMaskPainter {
 public:
  static constexpr int64_t kMaxPixels = int64_t{1} << 28;  // positions are 32 bits in pycocotools
  static constexpr int64_t kMaxSteps = int64_t{1} << 26;   // steps along boundaries, for all masks
  // how many times polygons may cover the image
  static constexpr int64_t kMaxCover = 4;

  // `masks`: how many will be drawn; their total cost is limited in proportion, so that a small
  // file cannot cause a lot of work. REQUIRES: 1 <= height, 1 <= width, height * width <=
  // kMaxPixels.
  CocoMaskPainter(int64_t height, int64_t width, int64_t masks = 1)
      : height_(height), width_(width), pixels_left_(kMaxCover * height * width * masks) {}

  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  int64_t pixels() const { return height_ * width_; }
  // REQUIRES for all draw functions: `plane` has pixels() bytes.
  std::string polygon(std::span<const double> xy, std::span<uint8_t> plane);
  // Lengths of alternating runs of 0s and 1s.
  std::string counts(std::span<const int64_t> runs, std::span<uint8_t> plane);
  // The same, in pycocotools' compressed text form.
  std::string compressed(std::string_view text, std::span<uint8_t> plane);

 private:
  struct Point {
    int64_t x, y;
  };
  std::string walk_boundary(std::span<const double> xy);
  void step(Point from, Point to);
  void fill(std::span<const uint32_t> edges, std::span<uint8_t> plane) const;

  int64_t height_, width_;
  int64_t pixels_left_, steps_left_ = kMaxSteps;
  std::vector<uint32_t> crossings_;  // column-major positions where the mask changes
  std::vector<int64_t> runs_;
};

}  // namespace headrace
