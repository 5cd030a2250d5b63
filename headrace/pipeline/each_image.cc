// SPDX-License-Identifier: Apache-2.0
// EachImage: transforms of every image of a packed row, whose results become one tensor. It is here
// and not with the other operators because each image runs through its own plan.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/fields/begin.h"
#include "headrace/ops/picture_op.h"
#include "headrace/pipeline/image_plan.h"

namespace headrace {
namespace {

const ErrorCode kTooManyParts{
    "HR0593", ErrorKind::kResource, "images of a row exceed the memory limit",
    "The patches or pixels of all images of one packed row exceed one record's share of "
    "memory_limit. Use a smaller length= of hr.packed(), smaller images, or raise memory_limit."};

class EachImage final : public Op {
 public:
  EachImage(std::vector<Spec> transforms, std::optional<bool> upright,
            const PictureOptions& options)
      : transforms_(std::move(transforms)),
        upright_(upright),
        plan_(transforms_, options_with(options, upright)) {}

  std::unique_ptr<Op> with_options(const PictureOptions& options) const override {
    return std::make_unique<EachImage>(transforms_, upright_, options);
  }
  bool takes(FieldKind kind) const override { return kind == FieldKind::kBytes; }

  void plan(FieldState& field) const override {
    if (!takes(field.kind)) {
      raise_invalid_argument("EachImage", "works on the images of packed rows, but \"" +
                                              field.name + "\" is " + text_of(field));
    }
    field.kind = FieldKind::kTensor;
    field.dtype = plan_.dtype();
    field.shape = {-1};
    for (const int64_t extent : plan_.part_shape()) field.shape.push_back(extent);
  }

  Result<void> apply(OpContext& context) const override {
    const Collecting alone(context.renderer, nullptr);  // a row's images are processed one by one
    for (const int field : context.fields) {
      Result<void> done =
          apply_to(context.record.fields[field], context.draws.key(), context.renderer);
      if (!done) return done;
    }
    return {};
  }

 private:
  Result<void> apply_to(FieldValue& value, uint64_t seed, Renderer& renderer) const {
    const Result<std::vector<RowImage>> images = row_images_from(value.bytes);
    if (!images) return images.error();
    Shape shape{0};
    for (const int64_t extent : plan_.part_shape()) shape.push_back(extent);
    const size_t part =
        static_cast<size_t>(element_count(plan_.part_shape())) * size_of(plan_.dtype());
    const auto most = static_cast<int64_t>(renderer.largest_value() / std::max<size_t>(part, 1));
    for (const RowImage& image : *images) {
      if (image.parts < 0 || image.parts > most - shape[0]) {
        return Error{.code = &kTooManyParts,
                     .what = std::to_string(images->size()) + " images have more than " +
                             std::to_string(most) + " patches"};
      }
      shape[0] += image.parts;
    }
    std::shared_ptr<Buffer> out = renderer.values().of(static_cast<size_t>(shape[0]) * part);
    uint8_t* at = out->data();
    for (size_t i = 0; i < images->size(); ++i) {
      const RowImage& image = (*images)[i];
      if (Result<void> done = plan_.apply(image, static_cast<int64_t>(i), seed, renderer, at);
          !done) {
        done.error().what = "image " + std::to_string(i) + " of the row, of document " +
                            std::to_string(image.document) + ": " + done.error().what;
        return done;
      }
      at += static_cast<size_t>(image.parts) * part;
    }
    value.kind = FieldKind::kTensor;
    value.dtype = plan_.dtype();
    value.shape = std::move(shape);
    value.own(std::move(out));
    return {};
  }

  static PictureOptions options_with(PictureOptions options, std::optional<bool> upright) {
    options.mode = PictureMode::kRGB;
    if (upright) options.exif_orientation = upright;
    return options;
  }

  const std::vector<Spec> transforms_;
  const std::optional<bool> upright_;
  const ImagePlan plan_;
};

std::unique_ptr<Op> make_each_image(const Arguments& arguments) {
  std::optional<bool> upright;
  if (!arguments.is_none("exif_orientation")) upright = arguments.flag("exif_orientation");
  return std::make_unique<EachImage>(arguments.branches("transforms").front().transforms, upright,
                                     PictureOptions{});
}

const OpRecord kEachImage{
    .name = "EachImage",
    .doc =
        "Applies a list of transforms to each image of a packed row, and concatenates the "
        "results.\n\n"
        "The field `images` of hr.packed(images=...), any number of encoded images per row, "
        "becomes one tensor: (patches of all images, values) if the list ends with Patchify, else "
        "(images, C, H, W), for which the list must give all images one size. The list must be the "
        "one passed to hr.packed as image_transforms=; an image whose result differs from what was "
        "counted at that time is a bad record (HR1459). Images are converted to RGB, according to "
        "the loader's options.",
    .page = {.unseen = "it works on packed rows: [vision-language models](vision-language.md)"},
    .params =
        {{.name = "transforms",
          .type = ParamType::kTransforms,
          .doc = "The transforms to apply to each image.",
          .required = true,
          .min_count = 1},
         {.name = "exif_orientation",
          .type = ParamType::kBool,
          .doc =
              "Whether images are rotated by their Exif orientation. None: as set by the loader's "
              "option; by default as in hr.packed."}},
    .oracle = "the same list for each image alone",
    .example = {{"transforms",
                 std::vector<Branch>{{"", {{"Resize", {{"size", std::vector<int64_t>{4, 4}}}}}}}},
                {"exif_orientation", true}},
    .make = make_each_image};
const Register<OpRecord> registered_each_image(kEachImage);

}  // namespace
}  // namespace headrace
