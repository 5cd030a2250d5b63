// SPDX-License-Identifier: Apache-2.0
// Shared by operators that change an image's pixels in place: colors, tables, levels. They act on
// images only; masks hold labels. Use ops/color/grayscale.cc as a template.
//
// Such an operator adds PixelSteps to the recipe, which are run over rows while they are in the
// cache (image/pixel_steps.h). An operator that needs a statistic of the picture first requests its
// pixels, and stores the result in its step.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "headrace/image/pending_picture.h"
#include "headrace/ops/op.h"

namespace headrace {

class PixelOp : public Op {
 public:
  // `name`: the name of the operator, for messages.
  explicit PixelOp(std::string_view name) : name_(name) {}
  bool takes(FieldKind kind) const final { return kind == FieldKind::kImage; }
  void plan(FieldState& field) const final;

 protected:
  // The state of an image afterwards; usually the result of plan_step().
  virtual void plan_image(FieldState& image) const = 0;
  // The state after the step. HR0510 for an unsupported number of channels, and for floats if it
  // has no float arithmetic.
  void plan_step(const PixelStep& step, FieldState& image) const;
  // The same if the computation is not a PixelStep.
  void plan_pixels(bool takes_floats, FieldState& image) const;
  // Applies the step to one image, at run time.
  Result<void> compute(OpContext& context, int field, const PixelStep& step) const;
  // The same for an image-wide pass, which computes a table for each channel.
  Result<void> compute(OpContext& context, int field, const PendingPass& pass) const;
  // Applies the step to every image of the record.
  Result<void> compute_all(OpContext& context, const PixelStep& step) const;
  static DevicePart part_of(const PixelStep& step) {
    return step.table ? DevicePart::kTable : DevicePart::kNone;
  }
  std::string_view name() const { return name_; }

 private:
  void plan_dtype(bool floats, const FieldState& image) const;
  void plan_channels(const PixelStep& step, FieldState& image) const;
  void check_channels(const PixelStep& step, int channels) const;
  const std::string_view name_;
};

// An operator that applies the same step to every record.
class FixedPixelOp final : public PixelOp {
 public:
  FixedPixelOp(std::string_view name, PixelStep step) : PixelOp(name), step_(std::move(step)) {}
  DevicePart device_part() const override { return part_of(step_); }
  Result<void> apply(OpContext& context) const override { return compute_all(context, step_); }

 private:
  void plan_image(FieldState& image) const override { plan_step(step_, image); }
  const PixelStep step_;
};

// An operator that is applied to each record with a probability: the "Random" in the names.
class RandomPixelOp : public PixelOp {
 public:
  RandomPixelOp(std::string_view name, double p) : PixelOp(name), p_(p) {}
  Result<void> apply(OpContext& context) const final;

 protected:
  // Applies it to one image of a drawn record.
  virtual Result<void> change(OpContext& context, int field) const = 0;

 private:
  const double p_;
};

// An operator that applies the same step to every drawn record.
class RandomFixedPixelOp final : public RandomPixelOp {
 public:
  RandomFixedPixelOp(std::string_view name, double p, PixelStep step)
      : RandomPixelOp(name, p), step_(std::move(step)) {}
  DevicePart device_part() const override { return part_of(step_); }

 private:
  void plan_image(FieldState& image) const override { plan_step(step_, image); }
  Result<void> change(OpContext& context, int field) const override {
    return compute(context, field, step_);
  }
  const PixelStep step_;
};

// Their parameter p.
Param probability_param(std::string_view doc, double fallback = 0.5);

// An image's current pixels, for operators that must measure them first.
Result<std::shared_ptr<const Picture>> pixels_now(OpContext& context, int field);
// An image-wide pass: done now, or recorded if a device decodes the image.
Result<void> do_pass(OpContext& context, int field, const PendingPass& pass);

// Shared by operators that make a new picture from existing pixels: noise, and filters that need
// neighbors. They get 8-bit pixels, or float32 if they support it, at the current size.
class WholeImageOp : public PixelOp {
 public:
  using PixelOp::PixelOp;
  bool measures() const final { return true; }

 protected:
  // Replaces every image of the record with `transform(in, out)`, which fills an `out` of the same
  // shape.
  template <class Transform>
  Result<void> transform_images(OpContext& context, Transform&& transform) const {
    for (const int field : context.fields) {
      const auto pixels = pixels_now(context, field);
      if (!pixels) return pixels.error();
      const Picture& in = **pixels;
      auto out = std::make_shared<Picture>(in.channels, in.height, in.width, in.dtype);
      if (Result<void> done = transform(in, *out); !done) return done;
      context.record.fields[field].picture = Recipe(std::move(out));
    }
    return {};
  }
};

}  // namespace headrace
