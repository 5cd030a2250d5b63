// SPDX-License-Identifier: Apache-2.0
#include "headrace/fields/field.h"

#include <algorithm>
#include <array>

namespace headrace {
namespace {
constexpr std::array<std::string_view, 11> kBoxFormats = {"",
                                                          "xyxy",
                                                          "xywh",
                                                          "cxcywh",
                                                          "xyxy_normalized",
                                                          "xywh_normalized",
                                                          "cxcywh_normalized",
                                                          "xywhr",
                                                          "cxcywhr",
                                                          "xyxyxyxy",
                                                          "xyxyxyxy_normalized"};
constexpr std::array<std::string_view, 3> kClampings = {"none", "soft", "hard"};
}  // namespace

size_t field_number(const Schema& schema, std::string_view name) {
  return static_cast<size_t>(std::ranges::find(schema, name, &Field::name) - schema.begin());
}

std::string_view name_of(BoxFormat format) { return kBoxFormats[static_cast<size_t>(format)]; }

BoxFormat box_format_from_name(std::string_view name) {
  const auto* const found = std::ranges::find(kBoxFormats, name);
  return found == kBoxFormats.end() ? BoxFormat::kUnspecified
                                    : static_cast<BoxFormat>(found - kBoxFormats.begin());
}

int numbers_of(BoxFormat format) {
  if (!is_rotated(format)) return 4;
  return format == BoxFormat::kXYWHR || format == BoxFormat::kCXCYWHR ? 5 : 8;
}

std::string_view name_of(Clamping clamping) { return kClampings[static_cast<size_t>(clamping)]; }

Clamping clamping_from_name(std::string_view name) {
  return static_cast<Clamping>(std::ranges::find(kClampings, name) - kClampings.begin());
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
