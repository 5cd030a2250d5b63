// SPDX-License-Identifier: Apache-2.0
// Shared by operators that divide an image into square patches: their size, their order and the
// order of values within a patch.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/base/parameters.h"
#include "headrace/fields/field.h"
#include "headrace/image/picture.h"

namespace headrace {

// Note [Layouts of patches]
// naflex: patches row by row; values by y, x, channel (timm, SigLIP 2).
// qwen2-vl: blocks of merge x merge patches row by row, and row by row within each, so that the
// patches that a model merges into one token are adjacent; values by channel, frame, y, x, where a
// still image is two equal frames (Qwen2-VL and its successors).
struct PatchGrid {
  int64_t patch = 16, merge = 1, frames = 1;
  bool channels_first = false;

  // Number of values per patch.
  int64_t values(int64_t channels) const { return frames * channels * patch * patch; }
  // Number of patches of an image; -1 if its sides are not multiples of patch * merge.
  int64_t patches(int64_t height, int64_t width) const;
};

struct PatchPosition {
  int64_t y, x;
};

// The parameters patch_size, layout and merge_size, and the grid that they specify. Throws HR0510.
std::vector<Param> patch_params();
PatchGrid patch_grid_from(std::string_view owner, const Arguments& arguments);

// The state of an image that becomes rows of `values` elements, one per patch. Throws HR0510.
void plan_patches(std::string_view owner, const PatchGrid& grid, int64_t values, DType dtype,
                  FieldState& field);
// HR0590, an error of the record, if the image cannot be divided into such a grid.
Result<void> check_patches(std::string_view owner, const PatchGrid& grid, Size size);

// Visits all patches in their order. REQUIRES: check_patches().
template <class Visit>
void for_each_patch(const PatchGrid& grid, Size size, const Visit& visit) {
  const int64_t rows = size.height / grid.patch, columns = size.width / grid.patch;
  for (int64_t top = 0; top < rows; top += grid.merge) {
    for (int64_t left = 0; left < columns; left += grid.merge) {
      for (int64_t y = top; y < top + grid.merge; ++y) {
        for (int64_t x = left; x < left + grid.merge; ++x) visit(PatchPosition{y, x});
      }
    }
  }
}

}  // namespace headrace
