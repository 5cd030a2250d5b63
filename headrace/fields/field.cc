// SPDX-License-Identifier: Apache-2.0
#include "headrace/fields/field.h"

#include <algorithm>
#include <array>

namespace headrace {

namespace {
constexpr std::array<std::string_view, 7> kBoxFormats = {
    "", "xyxy", "xywh", "cxcywh", "xyxy_normalized", "xywh_normalized", "cxcywh_normalized"};
}  // namespace

std::string_view name_of(BoxFormat format) { return kBoxFormats[static_cast<size_t>(format)]; }

BoxFormat box_format_from_name(std::string_view name) {
  const auto* const found = std::ranges::find(kBoxFormats, name);
  return found == kBoxFormats.end() ? BoxFormat::kUnsaid
                                    : static_cast<BoxFormat>(found - kBoxFormats.begin());
}

std::string text_of(DType dtype, const Shape& shape) {
  std::string out = std::string(name_of(dtype)) + " (";
  for (size_t i = 0; i < shape.size(); ++i) {
    out += (i ? ", " : "") + (shape[i] < 0 ? "?" : std::to_string(shape[i]));
  }
  return out + (shape.size() == 1 ? ",)" : ")");
}

std::string text_of(const FieldState& state) {
  if (state.kind == FieldKind::kText) return "text";
  if (state.kind == FieldKind::kBytes) return "bytes";
  return text_of(state.dtype, state.shape);
}

}  // namespace headrace
