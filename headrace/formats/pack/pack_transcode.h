// SPDX-License-Identifier: Apache-2.0
// Converts values for a pack: chooses a PackForm, and returns the reason for the choice.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"
#include "headrace/fields/media.h"
#include "headrace/formats/pack/pack_writer.h"
#include "headrace/image/render.h"
#include "headrace/sources/schema.h"

namespace headrace {

// For one thread.
class Transcoder {
 public:
  // No level: everything is stored unchanged and unchecked.
  explicit Transcoder(std::optional<PackLevel> level) : level_(level) {}

  // Converts a field's value for the pack. REQUIRES: kPadding readable bytes after encoded images.
  // Fails if the value does not match the field (HR0454) or exceeds 4 GiB (HR0453).
  Result<PackedValue> value(const Field& field, const FieldData& data);

 private:
  Result<PackedValue> picture(const Field& field, std::span<const uint8_t> bytes);
  PackedValue file(const MediaRecord& media, std::span<const uint8_t> bytes);
  // Why the image cannot be decoded; empty if it can.
  std::string trial_decode(const Field& field, std::span<const uint8_t> bytes);

  const std::optional<PackLevel> level_;
  std::unordered_map<const CodecRecord*, std::unique_ptr<ImageDecoder>> decoders_;
  Renderer renderer_;
};

}  // namespace headrace
