// SPDX-License-Identifier: Apache-2.0
// A record's value between the source and the pipeline: the input of KindRecord::begin.
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
  // As in the file: its channels and, of 8, 16 or float32, its samples. Palettes are looked up.
  kStored,
};

// How pictures are read.
struct PictureOptions {
  PictureMode mode = PictureMode::kRGB;
  // Nothing: as false, and the loader says it where an Exif tag asks for a turn.
  std::optional<bool> exif_orientation = {};
  // As DecodeJob has them.
  bool strict = false, repair = false;
  SixteenBit sixteen_bit = SixteenBit::kRefuse;
  int page = 0;
  DecodeLimits limits = {};
  VideoDecoderOptions video = {};
};

struct Beginning {
  static constexpr size_t kOpen = static_cast<size_t>(-1);
  const Field& field;       // of the source
  const FieldState& state;  // of the plan, at its begin
  size_t bytes;             // of the value, kOpen where records differ
  const FieldData& data;
  const PictureOptions& options;
  Renderer& renderer;
  std::shared_ptr<Picture>& pixels;  // memory of pictures that come as tensors
};

}  // namespace headrace
