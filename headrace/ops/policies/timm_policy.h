// SPDX-License-Identifier: Apache-2.0
// timm's augmentation strings ("rand-m9-mstd0.5-inc1"): parsed into a table of steps, and the
// meaning of a step's level. Data and pure functions; TimmAugment draws and does it.
//
// Facts are those of module timm.data.auto_augment, timm 1.0.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/ops/policies/augmentation.h"

namespace headrace {

struct TimmStep {
  enum class Kind : uint8_t {
    kAutoContrast,
    kEqualize,
    kInvert,
    kRotate,
    kPosterize,
    kPosterizeIncreasing,
    kPosterizeOriginal,
    kSolarize,
    kSolarizeIncreasing,
    kSolarizeAdd,
    kColor,
    kColorIncreasing,
    kContrast,
    kContrastIncreasing,
    kBrightness,
    kBrightnessIncreasing,
    kSharpness,
    kSharpnessIncreasing,
    kShearX,
    kShearY,
    kTranslateX,
    kTranslateY,
    kDesaturate,
    kGaussianBlur,
    kGaussianBlurRand,
  };
  Kind kind;
  double p = 1;
  double magnitude = 10;
};

struct TimmPolicy {
  enum class Form : uint8_t { kRand, kAugMix, kAuto };
  Form form = Form::kRand;
  std::vector<TimmStep> steps = {};  // to choose from; kAuto: sub-policies of `pair` steps
  int pair = 2;
  // kRand: how many are chosen; by weights each comes once at most, without them it may come again.
  int layers = 2;
  std::vector<double> weights = {};
  // kAugMix. Depth -1: 1 to 3.
  int width = 3, depth = -1;
  double alpha = 1;
  bool blended = false;
  double deviation = 0;  // of magnitudes, about the step's; infinite: uniform from 0 to it
  double most = 10;      // upper limit of magnitudes
};

// Throws HR0510, naming the piece and what may stand there.
TimmPolicy timm_policy(std::string_view owner, std::string_view text);

// Argument of an operation at a level (0 to TimmPolicy::most): factor, bits, threshold, degrees,
// a slope, a share of the size, a radius. `share`: of the range that kGaussianBlurRand draws from.
double timm_argument(TimmStep::Kind kind, double level, bool negated, double translate,
                     double share);

}  // namespace headrace
