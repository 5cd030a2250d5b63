// SPDX-License-Identifier: Apache-2.0
// Where the pixels of a row of the outcome lie in the source, in torch's grid. Internal to image/.
#pragma once

#include <vector>

#include "headrace/image/warp.h"
#include "headrace/kernels/warps/warp_rows.h"

namespace headrace {

inline constexpr size_t kBeyondRow = 16;  // elements that kernels may write past a row

class TorchPlaces {
 public:
  // REQUIRES: the warp outlives it.
  TorchPlaces(const Warp& warp, Size from, const Window& part);
  // Of the part.
  void row(int y, float* x, float* y_of);

 private:
  const Warp& warp_;
  const Window part_;
  const TorchGrid grid_;
  std::vector<float> identity_x_;  // where a field is given
  std::vector<float> by_y_;        // of a row, where that is one number
};

}  // namespace headrace
