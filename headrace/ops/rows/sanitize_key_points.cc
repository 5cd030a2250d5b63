// SPDX-License-Identifier: Apache-2.0
// SanitizeKeyPoints: drops points outside of the picture, with everything that belongs to them.
#include "headrace/base/registry.h"
#include "headrace/fields/coordinates.h"
#include "headrace/ops/row_op.h"

namespace headrace {
namespace {

class SanitizeKeyPoints final : public RowFilter {
 public:
  SanitizeKeyPoints() : RowFilter(FieldKind::kKeypoints) {}

 private:
  void plan_rows(FieldState& points) const override {
    check_points("SanitizeKeyPoints", points);
    if (points.shape.size() >= 2) return;
    raise_invalid_argument(
        "SanitizeKeyPoints",
        "drops rows of points, but \"" + points.name + "\" is " + text_of(points),
        "points of shape (rows, 2), or (rows, points, 2)");
  }

  std::vector<bool> kept(const FieldValue& points, Size canvas) const override {
    const auto rows = static_cast<size_t>(points.shape[0]);
    const auto numbers_of_point = static_cast<size_t>(points.shape.back());
    std::vector<bool> kept(rows, true);
    look_at_coordinates(points, [&](const auto& numbers) {
      const size_t of_row = rows > 0 ? numbers.size() / rows : 0;
      for (size_t at = 0; at + numbers_of_point <= numbers.size(); at += numbers_of_point) {
        const auto x = numbers[at], y = numbers[at + 1];
        const bool inside = x >= 0 && x < canvas.width && y >= 0 && y < canvas.height;
        if (!inside) kept[at / of_row] = false;
      }
    });
    return kept;
  }
};

const OpRecord kSanitizeKeyPoints{
    .name = "SanitizeKeyPoints",
    .doc =
        "Drops keypoints outside of the image.\n\n"
        "Keypoints, (rows, 2 or more) or (rows, points, 2 or more), in pixels: a row is dropped "
        "if any of its points is outside, even if that point is not labeled. The other fields "
        "of the row group lose the same rows; use fields= to name them if the source does not "
        "define row groups.",
    .page = {.unseen = "it drops rows: [detection](detection.md)"},
    .params = {},
    .oracle = "torchvision v2's SanitizeKeyPoints, row for row",
    .make = [](const Arguments&) -> std::unique_ptr<Op> {
      return std::make_unique<SanitizeKeyPoints>();
    }};
const Register<OpRecord> registered_sanitize_points(kSanitizeKeyPoints);

}  // namespace
}  // namespace headrace
