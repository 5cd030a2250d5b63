// SPDX-License-Identifier: Apache-2.0
// The operations on an image's pixels, as data for kernels: the instructions of RunPrograms, which
// compute each pixel from its own samples, and the passes that look at all of an image.
//
// Images are dense planes of 8 bits, (C, H, W), one or three channels, all of a batch of one size.
#pragma once

#include <cstdint>

namespace headrace {

// Per-pixel operations. The arithmetic is that of the CPU's steps (kernels/color/pixel_math.h).
enum class PixelCode : uint8_t {
  kNone,              // no kernel has it
  kTable,             // of each channel, that cross with the program
  kMeasuredTable,     // of each channel, that MakeMeasuredTables has made
  kGray,              // torchvision's gray in every channel
  kPillowGray,        // Pillow's
  kPermutation,       // values[c]: the channel that becomes channel c
  kSaturation,        // values: factor, float(1 - factor)
  kPillowSaturation,  // values: factor
  kHue,               // values: share of the circle
  kPillowHue,         // values: of 256 hues
};

struct PixelInstruction {
  uint32_t code = 0;   // PixelCode
  uint32_t table = 0;  // number of the set of tables
  float values[6] = {};
};
static_assert(sizeof(PixelInstruction) == 32);

// Passes over an image that read more than one pixel at a time.
enum class PassCode : uint8_t {
  kContrast,  // measured: a table of each channel is made of it
  kPillowContrast,
  kAutocontrast,
  kPillowAutocontrast,
  kEqualize,
  kSharpness,  // neighbors: pixels of another image are made of it
  kPillowSharpness,
  kGaussianBlur,
  kWarp,
};
constexpr bool is_measured(PassCode code) { return code <= PassCode::kEqualize; }

}  // namespace headrace
