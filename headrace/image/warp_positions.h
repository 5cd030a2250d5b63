// SPDX-License-Identifier: Apache-2.0
// Source coordinates of a result's pixels: torch's grid, and Pillow's nearest pixels. Internal to
// image/.
#pragma once

#include <vector>

#include "headrace/image/warp.h"
#include "headrace/kernels/warps/warp_rows.h"

namespace headrace {

inline constexpr size_t kRowPadding = 16;  // elements that kernels may write past a row

TorchGrid torch_grid_of(const Warp& warp, Size from, const Window& part);

class TorchPositions {
 public:
  // REQUIRES: the warp outlives it.
  TorchPositions(const Warp& warp, Size from, const Window& part);
  // Computes the source coordinates of a row of the part.
  void row(int y, float* x, float* y_of);

 private:
  const Warp& warp_;
  const Window part_;
  const TorchGrid grid_;
  std::vector<float> identity_x_;  // if there is a field
  std::vector<float> by_y_;        // of a row, where that is one number
};

// How Pillow finds the nearest pixels of an affine map: if axes stay axis-aligned, by adding up
// steps per column and row; otherwise in fixed point, if all positions fit.
bool keeps_axes(const Warp& warp);
// The source column of each column of the part, or the source row of each row; kOutside if outside.
std::vector<int32_t> source_columns(const Warp& warp, Size from, const Window& part);
std::vector<int32_t> source_rows(const Warp& warp, Size from, const Window& part);
bool fits_fixed(const Warp& warp);
// Positions of the part's first row, and the increment per row, which wraps around.
struct FixedLookup {
  FixedRow row;
  uint32_t down_x, down_y;
};
FixedLookup fixed_lookup_of(const Warp& warp, const Window& part);

}  // namespace headrace
