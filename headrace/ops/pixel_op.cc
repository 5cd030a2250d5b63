// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/pixel_op.h"

#include <string>

#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

std::string text_of_channels(int64_t channels) {
  return std::to_string(channels) + (channels == 1 ? " channel" : " channels");
}

}  // namespace

void PixelOp::plan(FieldState& field) const {
  if (field.kind == FieldKind::kMask) {
    raise_invalid_argument(name_, "\"" + field.name + "\" is a mask: its values are class ids",
                           "remove it from fields=; kinds={\"" + field.name +
                               "\": \"image\"} says that it is an image");
  }
  if (field.kind != FieldKind::kImage) {
    raise_invalid_argument(name_, "\"" + field.name + "\" is a " +
                                      std::string(name_of(field.kind)) +
                                      " field, and the transform works on images");
  }
  plan_image(field);
}

void PixelOp::plan_step(const PixelStep& step, FieldState& image) const {
  plan_dtype(step.function->floats != nullptr, image);
  plan_channels(step, image);
}

void PixelOp::plan_pixels(bool takes_floats, FieldState& image) const {
  plan_dtype(takes_floats, image);
  plan_channels(table_step({}), image);  // accepts one or three channels
}

void PixelOp::plan_dtype(bool floats, const FieldState& image) const {
  if (image.dtype != DType::kUInt8 && !(floats && image.dtype == DType::kFloat32)) {
    raise_invalid_argument(name_,
                           std::string("works on uint8") + (floats ? " and float32" : "") +
                               ", but \"" + image.name + "\" is " +
                               std::string(name_of(image.dtype)) + " here",
                           "put it before ToDtype");
  }
}

void PixelOp::plan_channels(const PixelStep& step, FieldState& image) const {
  if (image.shape[0] < 0) return;  // not known yet, because of a RandomApply; checked at run time
  const int channels = step.function->channels(step, static_cast<int>(image.shape[0]));
  if (channels == 0) {
    raise_invalid_argument(
        name_,
        "does not work on the " + text_of_channels(image.shape[0]) + " of \"" + image.name + "\"",
        "select images with fields=");
  }
  image.shape[0] = channels;
}

void PixelOp::check_channels(const PixelStep& step, int channels) const {
  if (step.function->channels(step, channels) != 0) return;
  raise_invalid_argument(name_, "does not work on the " + text_of_channels(channels) +
                                    " that some records have after a RandomApply before it");
}

Result<void> PixelOp::compute(OpContext& context, int field, const PixelStep& step) const {
  check_channels(step, context.record.fields[field].picture.channels());
  return edit(context, field, [&](Recipe& picture) { return picture.compute(step); });
}

Result<void> PixelOp::compute(OpContext& context, int field, const PendingPass& pass) const {
  static const PixelStep table = table_step({});  // the same for every such pass
  check_channels(table, context.record.fields[field].picture.channels());
  return do_pass(context, field, pass);
}

Result<void> PixelOp::compute_all(OpContext& context, const PixelStep& step) const {
  for (int field : context.fields) {
    if (Result<void> done = compute(context, field, step); !done) return done;
  }
  return {};
}

Result<void> RandomPixelOp::apply(OpContext& context) const {
  if (!context.draws.coin(p_)) return {};
  for (int field : context.fields) {
    if (Result<void> done = change(context, field); !done) return done;
  }
  return {};
}

Param probability_param(std::string_view doc, double fallback) {
  return {.name = "p",
          .type = ParamType::kFloat,
          .doc = doc,
          .fallback = fallback,
          .minimum = 0,
          .maximum = 1};
}

Result<std::shared_ptr<const Picture>> pixels_now(OpContext& context, int field) {
  Recipe& picture = context.record.fields[field].picture;
  if (Result<void> made = context.renderer.materialize(picture); !made) {
    return std::move(made.error());
  }
  return picture.pixels();
}

Result<void> do_pass(OpContext& context, int field, const PendingPass& pass) {
  Recipe& picture = context.record.fields[field].picture;
  if (picture.left_to_device()) {
    picture = pending(std::move(picture), pass);
    return {};
  }
  const auto pixels = pixels_now(context, field);
  if (!pixels) return pixels.error();
  picture = pass.function->apply(pass, *pixels);
  return {};
}

}  // namespace headrace
