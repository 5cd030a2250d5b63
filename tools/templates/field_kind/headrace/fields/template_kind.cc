// SPDX-License-Identifier: Apache-2.0
// Directions: angles in degrees, counted from the x axis to the y axis of the record's pictures.
#include "headrace/base/registry.h"
#include "headrace/fields/coordinates.h"
#include "headrace/fields/geometry.h"
#include "headrace/fields/numbers.h"

namespace headrace {
namespace {

template <class Number>
void turn(Number& angle, const Geometry::Move& move) {
  if (std::holds_alternative<Geometry::FlipHorizontal>(move)) angle = 180 - angle;
  if (std::holds_alternative<Geometry::FlipVertical>(move)) angle = -angle;
  if (std::holds_alternative<Geometry::Transpose>(move)) angle = 90 - angle;
}

Result<void> directions_follow(const FollowContext& way, FieldValue& value) {
  change_coordinates(value, [&](auto angles) {
    for (const Geometry::Move& move : way.geometry.moves()) {
      for (auto& angle : angles) turn(angle, move);
    }
  });
  return {};
}

std::string directions_want(const FieldState& field) {
  return is_movable(field.dtype) ? ""
                                 : "only float32, float64, int32 or int64 directions can follow it";
}

const KindRecord kTemplateDirections{
    .name = "template_directions",
    .doc = "Angles in degrees. They follow flips; crops and borders do not change them.",
    .kind = FieldKind::kTemplateDirections,
    .spatial = true,
    .take = [](Field& field) { return take_numbers(field, FieldKind::kTemplateDirections); },
    .begin = begin_numbers,
    .follow = directions_follow,
    .wants = directions_want};
const Register<KindRecord> registered_template_directions(kTemplateDirections);

}  // namespace
}  // namespace headrace
