// SPDX-License-Identifier: Apache-2.0
// The operations of automatic augmentation, and their strengths. AutoAugment, RandAugment,
// TrivialAugmentWide and AugMix have tables of operations, from which they draw.
//
// As in torchvision, a magnitude is a bin, in float32, on a scale from the weakest to the
// strongest, and operations with a sign draw the sign at random.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/warps/warp_op.h"

namespace headrace {

struct Augmentation {
  enum class Kind : uint8_t {
    kIdentity,
    kShearX,
    kShearY,
    kTranslateX,
    kTranslateY,
    kRotate,
    kBrightness,
    kColor,
    kContrast,
    kSharpness,
    kPosterize,
    kSolarize,
    kAutoContrast,
    kEqualize,
    kInvert,
  };
  // Unit of `first` and `last`, the weakest and the strongest magnitude.
  enum class Unit : uint8_t { kNone, kNumber, kShareOfWidth, kShareOfHeight, kBits };

  Kind kind = Kind::kIdentity;
  Unit unit = Unit::kNone;
  double first = 0, last = 0;
  bool has_sign = false;
};

// The choices of RandAugment and TrivialAugmentWide, in torchvision's order.
inline constexpr Augmentation::Kind kFourteenKinds[] = {
    Augmentation::Kind::kIdentity,     Augmentation::Kind::kShearX,
    Augmentation::Kind::kShearY,       Augmentation::Kind::kTranslateX,
    Augmentation::Kind::kTranslateY,   Augmentation::Kind::kRotate,
    Augmentation::Kind::kBrightness,   Augmentation::Kind::kColor,
    Augmentation::Kind::kContrast,     Augmentation::Kind::kSharpness,
    Augmentation::Kind::kPosterize,    Augmentation::Kind::kSolarize,
    Augmentation::Kind::kAutoContrast, Augmentation::Kind::kEqualize};

// torchvision's tables, in its order. `largest`: for shear, rotation and color; translations are a
// fraction of the size, or pixels.
struct AugmentationScale {
  double shear, degrees, color;
  double translate;
  bool translates_pixels = false;
  double max_bits, min_bits;  // bits left by posterize
};
std::vector<Augmentation> augmentations(std::span<const Augmentation::Kind> kinds,
                                        const AugmentationScale& scale);

// REQUIRES: bins > 1, bin below it.
double magnitude_of(const Augmentation& augmentation, int bins, int bin, Size canvas);

// Applies a non-geometric operation to one image. `argument`: a factor, bits, a threshold.
// REQUIRES: `kind` is neither the identity nor geometric.
Result<void> recolor(OpContext& context, int field, Augmentation::Kind kind, double argument,
                     Arithmetic arithmetic);
// HR0510 unless the image has one or three channels.
void check_colors(std::string_view owner, const FieldState& picture);

// An operation that was drawn.
struct DrawnAugmentation {
  const Augmentation* augmentation = nullptr;
  int bins = 2, bin = 0;
  bool negated = false;
};

// Operators that apply such operations. Images and masks, (C, H, W) uint8, images of one or three
// channels; shapes and dtypes are kept; fields in the pictures' coordinates follow their geometry.
class AugmentOp : public WarpOp {
 protected:
  AugmentOp(std::string_view name, const Arguments& arguments)
      : WarpOp(name, arguments), arithmetic_(arithmetic_from(arguments)) {}
  // Applies it to every field of the step.
  Result<void> augment(OpContext& context, const DrawnAugmentation& drawn) const;
  void plan_picture(FieldState& picture) const override;

 private:
  Result<Geometry> geometry(const DrawnAugmentation& drawn, Size canvas) const;
  const Arithmetic arithmetic_;
};

// Their parameters: `own`, then interpolation, fill, mask_fill and arithmetic.
std::vector<Param> with_augment_params(std::vector<Param> own, std::string_view interpolation);

}  // namespace headrace
