// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/coco/coco_masks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "headrace/base/number_text.h"

namespace headrace {
namespace {

constexpr double kScale = 5;       // the boundary is traversed in fifths of a pixel
constexpr double kFarthest = 1e8;  // coordinate of a vertex; pycocotools' ints overflow beyond it
constexpr int64_t kTileWidth = 64, kTileHeight = 64;  // few cache lines at any stride

int64_t fifths(double coordinate) { return static_cast<int64_t>(kScale * coordinate + .5); }

}  // namespace

// Fills between each two edges, in ascending order: positions down the columns. Works tile by tile,
// because in wide pictures each step down a column touches another memory page.
void CocoMaskPainter::fill(std::span<const uint32_t> edges, std::span<uint8_t> plane) const {
  std::array<size_t, kTileWidth> next;  // current edge of each column
  for (int64_t left = 0; left < width_; left += kTileWidth) {
    const int64_t columns = std::min(kTileWidth, width_ - left);
    for (int64_t i = 0; i < columns; ++i) {  // the first that ends after the start of the column
      const auto begin = static_cast<uint32_t>((left + i) * height_);
      const auto at = std::upper_bound(edges.begin(), edges.end(), begin) - edges.begin();
      next[static_cast<size_t>(i)] = static_cast<size_t>(at) / 2 * 2;
    }
    for (int64_t top = 0; top < height_; top += kTileHeight) {
      const int64_t bottom = std::min(top + kTileHeight, height_);
      for (int64_t i = 0; i < columns; ++i) {
        const int64_t column = (left + i) * height_;
        size_t& edge = next[static_cast<size_t>(i)];
        for (; edge + 1 < edges.size() && edges[edge] < column + bottom; edge += 2) {
          const int64_t begin = std::max<int64_t>(edges[edge] - column, top);
          const int64_t end = std::min<int64_t>(edges[edge + 1] - column, bottom);
          uint8_t* at = plane.data() + begin * width_ + left + i;
          for (int64_t y = begin; y < end; ++y, at += width_) *at = 1;
          if (edges[edge + 1] > column + bottom) break;  // continues in the next tile
        }
      }
    }
  }
}

// A step to another fifth of a column: where it crosses the center of a pixel's column, the mask
// changes below it.
void CocoMaskPainter::step(Point from, Point to) {
  if (to.x == from.x) return;
  const double x = (static_cast<double>(to.x < from.x ? to.x : to.x - 1) + .5) / kScale - .5;
  if (std::floor(x) != x || x < 0 || x > static_cast<double>(width_ - 1)) return;
  double y = (static_cast<double>(std::min(to.y, from.y)) + .5) / kScale - .5;
  y = std::ceil(std::clamp(y, 0.0, static_cast<double>(height_)));
  crossings_.push_back(
      static_cast<uint32_t>(static_cast<int64_t>(x) * height_ + static_cast<int64_t>(y)));
}

std::string CocoMaskPainter::walk_boundary(std::span<const double> xy) {
  const size_t count = xy.size() / 2;
  for (const double value : xy) {
    if (!(std::abs(value) <= kFarthest))
      return "a polygon with a vertex at " + shortest_text(value);
  }
  const auto vertex = [&](size_t i) {
    i = i == count ? 0 : i;
    return Point{fifths(xy[2 * i]), fifths(xy[2 * i + 1])};
  };
  crossings_.clear();
  Point last = vertex(0);
  for (size_t i = 0; i < count; ++i) {
    Point begin = vertex(i), end = vertex(i + 1);
    const int64_t dx = std::abs(end.x - begin.x), dy = std::abs(end.y - begin.y);
    const bool along_x = dx >= dy;
    const bool flip = along_x ? begin.x > end.x : begin.y > end.y;
    if (flip) std::swap(begin, end);
    const int64_t length = along_x ? dx : dy;
    if (length == 0) continue;  // duplicate vertex
    if (length > steps_left_) return "polygons whose boundaries are too long to draw";
    steps_left_ -= length;
    const double slope = along_x ? static_cast<double>(end.y - begin.y) / static_cast<double>(dx)
                                 : static_cast<double>(end.x - begin.x) / static_cast<double>(dy);
    for (int64_t d = 0; d <= length; ++d) {
      const int64_t t = flip ? length - d : d;
      const double along = slope * static_cast<double>(t);
      const Point point =
          along_x
              ? Point{t + begin.x, static_cast<int64_t>(static_cast<double>(begin.y) + along + .5)}
              : Point{static_cast<int64_t>(static_cast<double>(begin.x) + along + .5), t + begin.y};
      if (i > 0 || d > 0) step(last, point);
      last = point;
    }
  }
  return {};
}

std::string CocoMaskPainter::polygon(std::span<const double> xy, std::span<uint8_t> plane) {
  if (xy.size() < 4 || xy.size() % 2 != 0) {
    return "a polygon of " + std::to_string(xy.size()) + " numbers; points have two each";
  }
  if (std::string wrong = walk_boundary(xy); !wrong.empty()) return wrong;
  crossings_.push_back(static_cast<uint32_t>(pixels()));
  std::sort(crossings_.begin(), crossings_.end());
  for (size_t i = 0; i + 1 < crossings_.size(); i += 2) {
    pixels_left_ -= crossings_[i + 1] - crossings_[i];
  }
  if (pixels_left_ < 0) return "polygons that cover the image many times";
  fill(crossings_, plane);
  return {};
}

std::string CocoMaskPainter::counts(std::span<const int64_t> runs, std::span<uint8_t> plane) {
  int64_t total = 0;
  for (const int64_t run : runs) {
    if (run < 0) return "a run-length code with a run of " + std::to_string(run);
    if (run > pixels() - total) return "a run-length code that is longer than the image";
    total += run;
  }
  if (total != pixels()) {
    return "a run-length code of " + std::to_string(total) + " pixels, but the image has " +
           std::to_string(pixels());
  }
  crossings_.clear();
  int64_t at = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    at += runs[i];
    crossings_.push_back(static_cast<uint32_t>(at));
  }
  fill(crossings_, plane);
  return {};
}

// Runs in groups of five bits, lowest first, starting from character '0'; starting with the third,
// each is the difference from the run two before.
std::string CocoMaskPainter::compressed(std::string_view text, std::span<uint8_t> plane) {
  constexpr int kMaxGroups = 7;  // 35 bits: longer than any run
  runs_.clear();
  for (size_t at = 0; at < text.size();) {
    int64_t value = 0;
    for (int group = 0;; ++group) {
      if (at == text.size() || group == kMaxGroups) return "a truncated run-length code";
      const int bits = text[at++] - '0';
      if (bits < 0 || bits > 63) return "a run-length code with an invalid character";
      value |= static_cast<int64_t>(bits & 31) << 5 * group;
      if (bits & 32) continue;
      if (bits & 16) value -= int64_t{1} << 5 * (group + 1);
      break;
    }
    if (runs_.size() > 2) value += runs_[runs_.size() - 2];
    if (value < 0 || value > pixels()) {
      return "a run-length code with a run of " + std::to_string(value);
    }
    runs_.push_back(value);
  }
  return counts(runs_, plane);
}

}  // namespace headrace
