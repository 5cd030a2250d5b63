// SPDX-License-Identifier: Apache-2.0
// FiveCrop, TenCrop: a picture's corners and center as separate fields, and their mirror images.
#include <string>

#include "headrace/base/registry.h"
#include "headrace/ops/op.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

// torchvision's order.
std::vector<Branch> five_crops(const Arguments& arguments, const std::string& mirror = {}) {
  std::vector<Branch> crops;
  for (const char* const place :
       {"top_left", "top_right", "bottom_left", "bottom_right", "center"}) {
    std::vector<Spec> steps;
    if (!mirror.empty()) steps.push_back({mirror, {{"p", 1.0}}});
    Spec crop{"CenterCrop", {{"size", arguments.value("size")}}};
    if (std::string_view(place) != "center") {
      crop.name = "CornerCrop";
      crop.arguments["corner"] = std::string(place);
    }
    steps.push_back(std::move(crop));
    crops.push_back({place + std::string(mirror.empty() ? "" : "_mirrored"), std::move(steps)});
  }
  return crops;
}

Param cropped_field_param() {
  return {.name = "field",
          .type = ParamType::kString,
          .doc = "The field to replace.",
          .fallback = std::string("image")};
}

const OpRecord kFiveCrop{
    .name = "FiveCrop",
    .doc =
        "Replaces an image with its four corners and its center.\n\n"
        "The fields top_left, top_right, bottom_left, bottom_right and center, in this order, "
        "each (C, size[0], size[1]), replace the field, like a Fork; later transforms apply to "
        "all of them. A smaller image is an error (HR0502).",
    .page = {.unseen = "it splits a field into several: [fields](fields.md)"},
    .params = {size_param(), cropped_field_param()},
    .oracle = "torchvision v2's FiveCrop, bit for bit",
    .example = {{"size", int64_t{4}}},
    .expand = [](const Arguments& arguments, const Spec&, PlanBuilder& builder) {
      builder.fork(arguments.text("field"), five_crops(arguments));
    }};
const Register<OpRecord> registered_five_crop(kFiveCrop);

const OpRecord kTenCrop{
    .name = "TenCrop",
    .doc =
        "Replaces an image with its four corners and its center, and those of its mirror image.\n\n"
        "Gives the fields of FiveCrop, then those of the mirrored image, top_left_mirrored to "
        "center_mirrored. A smaller image is an error (HR0502).",
    .page = {.unseen = "it splits a field into several: [fields](fields.md)"},
    .params = {size_param(),
               {.name = "vertical_flip",
                .type = ParamType::kBool,
                .doc = "Whether to mirror from top to bottom instead of left to right.",
                .fallback = false},
               cropped_field_param()},
    .oracle = "torchvision v2's TenCrop, bit for bit",
    .example = {{"size", int64_t{4}}, {"vertical_flip", true}},
    .expand = [](const Arguments& arguments, const Spec&, PlanBuilder& builder) {
      std::vector<Branch> crops = five_crops(arguments);
      const bool vertical = arguments.flag("vertical_flip");
      for (Branch crop :
           five_crops(arguments, vertical ? "RandomVerticalFlip" : "RandomHorizontalFlip")) {
        crops.push_back(std::move(crop));
      }
      builder.fork(arguments.text("field"), crops);
    }};
const Register<OpRecord> registered_ten_crop(kTenCrop);

}  // namespace
}  // namespace headrace
