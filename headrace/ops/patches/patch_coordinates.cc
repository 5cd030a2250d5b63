// SPDX-License-Identifier: Apache-2.0
// PatchCoordinates: the position of each patch of an image, in the order of Patchify.
#include "headrace/base/registry.h"
#include "headrace/ops/patches/patch_grid.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

class PatchCoordinates final : public Op {
 public:
  explicit PatchCoordinates(const PatchGrid& grid) : grid_(grid) {}
  bool takes(FieldKind kind) const override { return kind == FieldKind::kImage; }

  void plan(FieldState& field) const override {
    plan_patches("PatchCoordinates", grid_, 2, DType::kInt64, field);
  }

  Result<void> apply(OpContext& context) const override {
    for (const int field : context.fields) {
      FieldValue& value = context.record.fields[field];
      const Size size = value.picture.size();
      if (Result<void> fits = check_patches("PatchCoordinates", grid_, size); !fits) return fits;
      value.shape = {grid_.patches(size.height, size.width), 2};
      Buffer made(size_t(value.shape[0]) * 2 * sizeof(int64_t));
      auto* out = reinterpret_cast<int64_t*>(made.data());
      for_each_patch(grid_, size, [&](PatchPosition at) {
        *out++ = at.y;
        *out++ = at.x;
      });
      value.kind = FieldKind::kTensor;
      value.dtype = DType::kInt64;
      value.picture = Recipe();
      value.own(std::move(made));
    }
    return {};
  }

 private:
  const PatchGrid grid_;
};

const OpRecord kPatchCoordinates{
    .name = "PatchCoordinates",
    .doc =
        "Replaces a record's images with the positions (y, x) of their patches.\n\n"
        "Images, (C, H, W), become int64 (patches, 2), in the order of the patches of Patchify "
        "with the same arguments. Nothing is decoded. For both in one record, use T.Fork: "
        "T.Fork(\"image\", patches=[..., T.Patchify(16)], coordinates=[T.PatchCoordinates(16)]).",
    .page = {.unseen = "its result is not an image: [vision-language models](vision-language.md)"},
    .params = patch_params(),
    .oracle = "timm's patchify_image, bit for bit",
    .example = {{"patch_size", int64_t{1}},
                {"layout", std::string("qwen2-vl")},
                {"merge_size", int64_t{1}}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<PatchCoordinates>(patch_grid_from("PatchCoordinates", arguments));
    }};
const Register<OpRecord> registered_patch_coordinates(kPatchCoordinates);

}  // namespace
}  // namespace headrace
