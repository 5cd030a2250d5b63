// SPDX-License-Identifier: Apache-2.0
// The operations on an image's pixels, as data for kernels: the instructions of RunPrograms, which
// compute each pixel from its own samples, and the image-wide passes.
//
// Images are dense 8-bit planes, (C, H, W), one or three channels; all images of a batch have the
// same size.
#pragma once

#include <cstdint>

namespace headrace {

// Per-pixel operations. They use the same arithmetic as the CPU operators
// (kernels/color/pixel_math.h).
enum class PixelCode : uint8_t {
  kNone,              // not supported by any kernel
  kTable,             // per channel; copied with the program
  kMeasuredTable,     // per channel; made by MakeMeasuredTables
  kGray,              // torchvision's gray in every channel
  kPillowGray,        // Pillow's
  kPermutation,       // values[c]: the source of channel c
  kSaturation,        // values: factor, float(1 - factor)
  kPillowSaturation,  // values: factor
  kHue,               // values: fraction of the circle
  kPillowHue,         // values: of 256 hues
};

struct PixelInstruction {
  uint32_t code = 0;   // PixelCode
  uint32_t table = 0;  // number of the table set
  float values[6] = {};
};
static_assert(sizeof(PixelInstruction) == 32);

// Image-wide passes, which depend on more than one pixel.
enum class PassCode : uint8_t {
  kContrast,  // measured: a table per channel is computed from it
  kPillowContrast,
  kAutocontrast,
  kPillowAutocontrast,
  kEqualize,
  kSharpness,  // neighbors: writes the pixels of another image
  kPillowSharpness,
  kGaussianBlur,
  kWarp,
};
constexpr bool is_measured(PassCode code) { return code <= PassCode::kEqualize; }

}  // namespace headrace
