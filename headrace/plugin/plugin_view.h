// SPDX-License-Identifier: Apache-2.0
// The engine's fields as a plug-in sees them: headrace_field with room for its shape and strides.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/fields/record.h"
#include "headrace/plugin.h"

namespace headrace {

// HEADRACE_IMAGE for kImage; 0 for kinds that plug-ins do not support.
uint32_t plugin_kind(FieldKind kind);

// Nullopt for a dtype that the engine does not support.
std::optional<DType> dtype_from(const headrace_dtype& dtype);

// One field. It contains pointers to itself, so it cannot be moved.
class PluginView {
 public:
  // `shape`: in the engine's order, (C, H, W) for pictures. REQUIRES: at most HEADRACE_MAX_AXES
  // axes.
  PluginView(FieldKind kind, const char* name, DType dtype, const Shape& shape);
  PluginView(const PluginView&) = delete;
  PluginView& operator=(const PluginView&) = delete;

  headrace_field& field() { return field_; }
  const headrace_field& field() const { return field_; }
  // Sets its memory, which is dense in the engine's order: planes for pictures.
  void point_to(const void* data);
  // Its current shape, in the engine's order, and dtype; nullopt if they are invalid: too many
  // axes, extents below -1, an unknown dtype.
  std::optional<Shape> shape() const;
  std::optional<DType> dtype() const { return dtype_from(field_.view.dtype); }

 private:
  const FieldKind kind_;
  int64_t shape_[HEADRACE_MAX_AXES] = {}, strides_[HEADRACE_MAX_AXES] = {};
  headrace_field field_{};
};

}  // namespace headrace
