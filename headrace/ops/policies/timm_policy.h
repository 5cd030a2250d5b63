// SPDX-License-Identifier: Apache-2.0
// timm's augmentation strings ("rand-m9-mstd0.5-inc1"): parses them into a table of steps, and
// defines the meaning of a step's level. Data and pure functions; TimmAugment draws and applies the
// operations. Follows the module timm.data.auto_augment of timm 1.0.
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
  std::vector<TimmStep> steps = {};  // the available steps; kAuto: sub-policies of `pair` steps
  int pair = 2;
  // kRand: number of steps drawn; without replacement if weighted, otherwise with replacement.
  int layers = 2;
  std::vector<double> weights = {};
  // kAugMix. Depth -1: 1 to 3.
  int width = 3, depth = -1;
  double alpha = 1;
  bool blended = false;
  // Standard deviation of magnitudes around the step's magnitude; infinite: uniform from 0 to the
  // step's magnitude.
  double deviation = 0;
  double most = 10;  // upper limit of magnitudes
};

// Throws HR0510 with the invalid piece and the allowed ones.
TimmPolicy timm_policy(std::string_view owner, std::string_view text);

// An operation's argument at a level (0 to TimmPolicy::most): factor, bits, threshold, degrees, a
// slope, a fraction of the size, a radius. `share`: position in the range that kGaussianBlurRand
// draws from.
double timm_argument(TimmStep::Kind kind, double level, bool negated, double translate,
                     double share);

}  // namespace headrace
