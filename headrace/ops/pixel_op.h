// SPDX-License-Identifier: Apache-2.0
// Shared by operators that compute an image's pixels and leave them where they are: colors,
// tables, levels. They act on images alone; masks hold labels. ops/color/grayscale.cc is the one to
// copy.
//
// Such an operator adds PixelSteps to the recipe, which are run over rows while they are in the
// cache (image/pixel_steps.h). One that needs a statistic of the picture first asks for its pixels,
// and puts the number that it found into its step.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "headrace/image/pending_picture.h"
#include "headrace/ops/op.h"

namespace headrace {

class PixelOp : public Op {
 public:
  // `name`: the operator's, for messages.
  explicit PixelOp(std::string_view name) : name_(name) {}
  bool takes(FieldKind kind) const final { return kind == FieldKind::kImage; }
  void plan(FieldState& field) const final;

 protected:
  // The state of an image afterwards; usually the result of plan_step().
  virtual void plan_image(FieldState& image) const = 0;
  // The image after the step. HR0510 for channels that it does not take, and for floats where it
  // has no arithmetic for them.
  void plan_step(const PixelStep& step, FieldState& image) const;
  // The same where it is not a step that will compute them.
  void plan_pixels(bool takes_floats, FieldState& image) const;
  // The step in one image, at run time.
  Result<void> compute(OpContext& context, int field, const PixelStep& step) const;
  // The same for a pass over all of its pixels, which gives a table of each channel.
  Result<void> compute(OpContext& context, int field, const PendingPass& pass) const;
  // In every image of the record.
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

// The same step for every record.
class FixedPixelOp final : public PixelOp {
 public:
  FixedPixelOp(std::string_view name, PixelStep step) : PixelOp(name), step_(std::move(step)) {}
  DevicePart device_part() const override { return part_of(step_); }
  Result<void> apply(OpContext& context) const override { return compute_all(context, step_); }

 private:
  void plan_image(FieldState& image) const override { plan_step(step_, image); }
  const PixelStep step_;
};

// A step that each record takes with a probability: the name's "Random".
class RandomPixelOp : public PixelOp {
 public:
  RandomPixelOp(std::string_view name, double p) : PixelOp(name), p_(p) {}
  Result<void> apply(OpContext& context) const final;

 protected:
  // In one image of a record that takes it.
  virtual Result<void> change(OpContext& context, int field) const = 0;

 private:
  const double p_;
};

// The same step for every record that takes it.
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

// The parameter p of these.
Param probability_param(std::string_view doc, double fallback = 0.5);

// An image's pixels as they are now, for what has to be measured before the step is known.
Result<std::shared_ptr<const Picture>> pixels_now(OpContext& context, int field);
// A pass over all of an image's pixels: done now, or noted where a device decodes the image.
Result<void> do_pass(OpContext& context, int field, const PendingPass& pass);

}  // namespace headrace
