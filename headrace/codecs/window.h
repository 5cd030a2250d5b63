// SPDX-License-Identifier: Apache-2.0
// Rectangles of pixels.
#pragma once

#include <algorithm>

namespace headrace {

// Columns [x, x + width), rows [y, y + height).
struct Window {
  int x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Window&) const = default;
  bool empty() const { return width <= 0 || height <= 0; }
};

// Whether it is not empty and inside an image of this size.
inline bool is_inside(const Window& window, int width, int height) {
  return window.x >= 0 && window.y >= 0 && !window.empty() && window.width <= width - window.x &&
         window.height <= height - window.y;
}

// The intersection; {0, 0, 0, 0} if it is empty.
inline Window common(const Window& a, const Window& b) {
  const int left = std::max(a.x, b.x), top = std::max(a.y, b.y);
  const int right = std::min(a.x + a.width, b.x + b.width);
  const int bottom = std::min(a.y + a.height, b.y + b.height);
  if (left >= right || top >= bottom) return {};
  return {left, top, right - left, bottom - top};
}

// The smallest window that contains both.
inline Window united(const Window& a, const Window& b) {
  const int left = std::min(a.x, b.x), top = std::min(a.y, b.y);
  return {left, top, std::max(a.x + a.width, b.x + b.width) - left,
          std::max(a.y + a.height, b.y + b.height) - top};
}

// The same window, in coordinates relative to (x, y).
inline Window seen_from(int x, int y, const Window& window) {
  return {window.x - x, window.y - y, window.width, window.height};
}

}  // namespace headrace
