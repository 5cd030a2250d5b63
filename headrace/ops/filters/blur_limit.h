// SPDX-License-Identifier: Apache-2.0
// The parameter blur_limit of MedianBlur and MotionBlur: the range of odd numbers from which the
// kernel size is drawn.
#pragma once

#include <string_view>

#include "headrace/ops/picture_op.h"

namespace headrace {

inline constexpr int kWidestBlur = 99;

inline Param blur_limit_param() {
  return {
      .name = "blur_limit",
      .type = ParamType::kInts,
      .doc =
          "Smallest and largest kernel size in pixels, both odd and inclusive; each odd size in "
          "between is equally probable. One number is the largest; the smallest is then 3.",
      .fallback = std::vector<int64_t>{3, 7},
      .minimum = 3,
      .maximum = kWidestBlur,
      .min_count = 1,
      .max_count = 2};
}

struct BlurLimit {
  BlurLimit(std::string_view owner, const Arguments& arguments) {
    const std::vector<int64_t>& given = arguments.integers("blur_limit");
    least = given.size() == 1 ? 3 : given[0];
    most = given.back();
    if (least % 2 == 0 || most % 2 == 0 || least > most) {
      raise_invalid_argument(owner, "blur_limit must be odd: one number, or (smallest, largest)");
    }
  }
  int draw(Draws& draws) const {
    return static_cast<int>(least + 2 * draws.below((most - least) / 2 + 1));
  }

  int64_t least = 3, most = 3;
};

}  // namespace headrace
