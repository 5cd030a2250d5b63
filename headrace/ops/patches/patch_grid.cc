// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/patches/patch_grid.h"

#include <string>

#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

const ErrorCode kNoGrid{
    "HR0590", ErrorKind::kData, "image cannot be divided into patches",
    "All patches have the same size, so both edges of an image must be multiples of it; with "
    "layout=\"qwen2-vl\", of patch_size times merge_size. Put ResizeToSequence or SmartResize "
    "before Patchify; a suitable Pad or CenterCrop works too."};

}  // namespace

int64_t PatchGrid::patches(int64_t height, int64_t width) const {
  const int64_t unit = patch * merge;
  if (height % unit != 0 || width % unit != 0) return -1;
  return (height / patch) * (width / patch);
}

std::vector<Param> patch_params() {
  return {{.name = "patch_size",
           .type = ParamType::kInt,
           .doc = "Edge of a square patch, in pixels.",
           .fallback = int64_t{16},
           .minimum = 1,
           .maximum = 4096},
          {.name = "layout",
           .type = ParamType::kString,
           .doc = "\"naflex\": patches row by row, values in the order y, x, channel. "
                  "\"qwen2-vl\": patches in blocks of merge_size x merge_size, values in the order "
                  "channel, frame, y, x, with two equal frames per image.",
           .fallback = std::string("naflex"),
           .choices = {"naflex", "qwen2-vl"}},
          {.name = "merge_size",
           .type = ParamType::kInt,
           .doc = "With layout=\"qwen2-vl\": patches per edge of a block, which the model merges. "
                  "None: 2.",
           .minimum = 1,
           .maximum = 64}};
}

PatchGrid patch_grid_from(std::string_view owner, const Arguments& arguments) {
  PatchGrid grid{.patch = arguments.integer("patch_size")};
  const bool merges = !arguments.is_none("merge_size");
  if (arguments.text("layout") == "naflex") {
    if (merges) raise_invalid_argument(owner, "merge_size requires layout=\"qwen2-vl\"");
    return grid;
  }
  grid.channels_first = true;
  grid.frames = 2;
  grid.merge = merges ? arguments.integer("merge_size") : 2;
  return grid;
}

void plan_patches(std::string_view owner, const PatchGrid& grid, int64_t values, DType dtype,
                  FieldState& field) {
  if (!is_picture(field.kind)) {
    raise_invalid_argument(owner,
                           "works on images, but \"" + field.name + "\" is " + text_of(field));
  }
  const int64_t height = field.shape[1], width = field.shape[2];
  int64_t patches = -1;
  if (height >= 0 && width >= 0) {
    patches = grid.patches(height, width);
    if (patches < 0) {
      raise_invalid_argument(owner,
                             "\"" + field.name + "\" is " + text_of(field) +
                                 ", not a multiple of " + std::to_string(grid.patch * grid.merge),
                             "put ResizeToSequence or SmartResize before it");
    }
  }
  field.kind = FieldKind::kTensor;
  field.dtype = dtype;
  field.shape = {patches, values};
}

Result<void> check_patches(std::string_view owner, const PatchGrid& grid, Size size) {
  if (grid.patches(size.height, size.width) > 0) return {};
  return Error{.code = &kNoGrid,
               .what = "[" + std::string(owner) + "] an image of " + text_of(size) +
                       " is not a multiple of " + std::to_string(grid.patch * grid.merge),
               .hint = "put ResizeToSequence or SmartResize before it"};
}

}  // namespace headrace
