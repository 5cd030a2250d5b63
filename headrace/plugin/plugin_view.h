// SPDX-License-Identifier: Apache-2.0
// The engine's fields as a plug-in sees them: headrace_field with room for its shape and strides.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/fields/record.h"
#include "headrace/plugin.h"

namespace headrace {

// HEADRACE_IMAGE of kImage; 0 of kinds that plug-ins do not see.
uint32_t plugin_kind(FieldKind kind);

// Nothing for a dtype that the engine does not have.
std::optional<DType> dtype_from(const headrace_dtype& dtype);

// One field; the pointers in it are to itself, so it stays where it is.
class PluginView {
 public:
  // `shape`: the engine's, (C, H, W) of pictures. REQUIRES: HEADRACE_MOST_AXES axes at most.
  PluginView(FieldKind kind, const char* name, DType dtype, const Shape& shape);
  PluginView(const PluginView&) = delete;
  PluginView& operator=(const PluginView&) = delete;

  headrace_field& field() { return field_; }
  const headrace_field& field() const { return field_; }
  // Its memory, dense as the engine has it: planes of pictures.
  void point_to(const void* data);
  // The axes and dtype that are in it now, as the engine has them; nothing where they are none:
  // too many axes, extents below -1, an unknown dtype.
  std::optional<Shape> shape() const;
  std::optional<DType> dtype() const { return dtype_from(field_.view.dtype); }

 private:
  const FieldKind kind_;
  int64_t shape_[HEADRACE_MOST_AXES] = {}, strides_[HEADRACE_MOST_AXES] = {};
  headrace_field field_{};
};

}  // namespace headrace
