// SPDX-License-Identifier: Apache-2.0
// An image that a device will decode, followed by an operation that depends on more than one pixel
// (a mean, neighbors, a warp). The operation is recorded, and executed by the device after decoding
// (image/coded_window.h), or by the renderer if the pixels turn out to be needed on the CPU. The
// result is the same.
//
// Only recipes for which Recipe::left_to_device() is true become pending, so a pipeline on the CPU
// executes its operations immediately.
#pragma once

#include <array>
#include <memory>

#include "headrace/image/recipe.h"
#include "headrace/image/warp.h"
#include "headrace/kernels/batch/pixel_program.h"

namespace headrace {

struct PendingPass;

// A constant that is defined in the file of its operator, like PixelFunction.
struct PassFunction {
  // Applies the pass. The returned recipe starts from these pixels, or from pixels computed from
  // them.
  Recipe (*apply)(const PendingPass& pass, const std::shared_ptr<const Picture>& pixels);
  PassCode code;
  // Whether mirroring the image before or after the pass gives the same result, bit for bit.
  bool keeps_mirrored = false;
};

struct PendingPass {
  const PassFunction* function = nullptr;
  std::array<double, 4> numbers{};        // meaning defined by the function
  std::shared_ptr<const Warp> warp = {};  // for warps; shared, because recipes are copied
};

struct PendingPicture {
  Recipe from;  // with 8-bit samples
  PendingPass pass;
  Size size;  // of the result
};

// Appends a pass to a recipe. REQUIRES: recipe.left_to_device(), and the pass is valid for an image
// of this size.
Recipe pending(Recipe recipe, PendingPass pass);

}  // namespace headrace
