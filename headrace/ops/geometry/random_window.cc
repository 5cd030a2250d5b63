// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/geometry/random_window.h"

#include <algorithm>
#include <cmath>

namespace headrace {
namespace {

constexpr int kAttempts = 10;

// Python's round(): to the nearest, ties to even.
double rounded(double x) { return std::nearbyint(x); }

Window central_window(Size picture, const std::array<double, 2>& allowed) {
  const double ratio = static_cast<double>(picture.width) / picture.height;
  int width = picture.width, height = picture.height;
  if (ratio < allowed[0]) {
    height = std::max(1, static_cast<int>(rounded(width / allowed[0])));
  } else if (ratio > allowed[1]) {
    width = std::max(1, static_cast<int>(rounded(height * allowed[1])));
  }
  return {(picture.width - width) / 2, (picture.height - height) / 2, width, height};
}

}  // namespace

RandomWindowParams::RandomWindowParams(std::array<double, 2> scale, std::array<double, 2> ratio)
    : scale(scale), ratio(ratio), log_ratio{portable_log(ratio[0]), portable_log(ratio[1])} {}

Window random_window(Size picture, const RandomWindowParams& params, Draws& draws) {
  const double area = static_cast<double>(picture.height) * picture.width;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double target = area * draws.uniform(params.scale[0], params.scale[1]);
    const double ratio = portable_exp(draws.uniform(params.log_ratio[0], params.log_ratio[1]));
    const double width = rounded(std::sqrt(target * ratio));
    const double height = rounded(std::sqrt(target / ratio));
    const bool fits =
        width >= 1 && height >= 1 && width <= picture.width && height <= picture.height;
    if (!fits) continue;
    const int w = static_cast<int>(width), h = static_cast<int>(height);
    const int y = static_cast<int>(draws.below(picture.height - h + 1));
    const int x = static_cast<int>(draws.below(picture.width - w + 1));
    return {x, y, w, h};
  }
  return central_window(picture, params.ratio);
}

}  // namespace headrace
