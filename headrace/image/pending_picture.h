// SPDX-License-Identifier: Apache-2.0
// An image that a device will decode, and of which a step needs all pixels at once (a mean,
// neighbors, a warp): the step is recorded, and executed by the device after decoding
// (image/coded_program.h), or by the renderer if pixels are needed on the CPU after all. The result
// is the same.
//
// Only recipes for which Recipe::left_to_device() holds become pending, so a pipeline on the CPU
// does its steps at once.
#pragma once

#include <array>
#include <memory>

#include "headrace/image/recipe.h"
#include "headrace/image/warp.h"
#include "headrace/kernels/batch/pixel_program.h"

namespace headrace {

struct PendingPass;

// A constant in the file of its operator, as PixelFunction is.
struct PassFunction {
  // Applies the pass. The recipe starts from these pixels, or from others made of them.
  Recipe (*apply)(const PendingPass& pass, const std::shared_ptr<const Picture>& pixels);
  PassCode code;
  // Whether an image that is mirrored first gives the mirrored outcome, bit for bit.
  bool keeps_mirrored = false;
};

struct PendingPass {
  const PassFunction* function = nullptr;
  std::array<double, 4> numbers{};        // meaning defined by the function
  std::shared_ptr<const Warp> warp = {};  // shared: recipes are copied. Of a warp
};

struct PendingPicture {
  Recipe from;  // of 8 bits
  PendingPass pass;
  Size size;  // of what comes out
};

// The recipe with the pass after it. REQUIRES: recipe.left_to_device(), and a pass that its
// arguments allow for this size; `size`: of what comes out, the recipe's own but for warps.
Recipe pending(Recipe recipe, PendingPass pass);

}  // namespace headrace
