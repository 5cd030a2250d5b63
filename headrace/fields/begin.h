// SPDX-License-Identifier: Apache-2.0
// A record's value on entering the pipeline: the input of KindRecord::begin.
#pragma once

#include <memory>
#include <optional>

#include "headrace/fields/field.h"
#include "headrace/fields/record.h"
#include "headrace/image/render.h"

namespace headrace {

// Modes to which encoded images are converted, by Pillow's names.
enum class PictureMode : uint8_t {
  kRGB,
  kL,
  kRGBA,
  // As in the file: its channels, and its samples as uint8, uint16 or float32. Palettes are
  // expanded.
  kStored,
};

// How images are decoded.
struct PictureOptions {
  PictureMode mode = PictureMode::kRGB;
  // Empty: like false, but the loader warns if an Exif tag requires a rotation or flip.
  std::optional<bool> exif_orientation = {};
  // As in DecodeJob.
  bool strict = false, repair = false;
  SixteenBit sixteen_bit = SixteenBit::kRefuse;
  int page = 0;
  DecodeLimits limits = {};
  VideoDecoderOptions video = {};
};

struct BeginContext {
  static constexpr size_t kOpen = static_cast<size_t>(-1);
  const Field& field;       // in the source's schema
  const FieldState& state;  // in the plan, before the first operator
  size_t bytes;             // size of the value; kOpen if records differ
  const FieldData& data;
  const PictureOptions& options;
  Renderer& renderer;
  std::shared_ptr<Picture>& pixels;  // memory for images that are stored as tensors
};

}  // namespace headrace
