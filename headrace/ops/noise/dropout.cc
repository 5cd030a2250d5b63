// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/noise/dropout.h"

#include <algorithm>
#include <string>

namespace headrace {

DropoutFill::DropoutFill(const Arguments& arguments) : image(arguments.numbers("fill")) {
  if (!arguments.is_none("fill_mask")) mask = arguments.number("fill_mask");
}

Param dropout_fill_param() {
  return {.name = "fill",
          .type = ParamType::kFloats,
          .doc =
              "Fill value of holes: one number, or one per channel, in the range of the image's "
              "dtype at this point (0 to 255 for uint8).",
          .fallback = int64_t{0},
          .min_count = 1,
          .max_count = kMaxChannels};
}

Param dropout_mask_param() {
  return {.name = "fill_mask",
          .type = ParamType::kFloat,
          .doc = "The same for masks. None leaves them unchanged."};
}

Param dropout_chance_param() {
  return {.name = "p",
          .type = ParamType::kFloat,
          .doc = "Probability of adding holes to a record.",
          .fallback = 0.5,
          .minimum = 0,
          .maximum = 1};
}

void DropoutOp::plan(FieldState& field) const {
  if (!is_picture(field.kind)) {
    raise_invalid_argument(name_, "\"" + field.name + "\" is a " +
                                      std::string(name_of(field.kind)) +
                                      " field, and the transform works on images and masks");
  }
  if (field.kind == FieldKind::kImage) return check_fill(name_, fill_.image, field);
  if (!fill_.mask) {
    raise_invalid_argument(name_, "\"" + field.name + "\" is a mask, but fill_mask is None",
                           "set fill_mask= to the value for its holes");
  }
  check_fill(name_, {*fill_.mask}, field, "fill_mask");
}

Result<void> DropoutOp::apply(OpContext& context) const {
  Result<Size> size = common_size(context);
  if (!size) return std::move(size.error());
  if (!context.draws.coin(p_)) return {};
  const Result<std::vector<Window>> drawn = holes(*size, context.draws);
  if (!drawn) return drawn.error();
  for (const Window& hole : *drawn) {
    if (hole.width <= 0 || hole.height <= 0) continue;
    for (const int field : context.fields) {
      const bool is_mask = context.record.fields[field].kind == FieldKind::kMask;
      Erased part{.window = hole};
      for (size_t c = 0; c < part.values.size(); ++c) {
        part.values[c] = is_mask ? *fill_.mask : fill_.image[c < fill_.image.size() ? c : 0];
      }
      Result<void> done =
          edit(context, field, [&](Recipe& picture) { return picture.erase(part); });
      if (!done) return done;
    }
  }
  return {};
}

}  // namespace headrace
