// SPDX-License-Identifier: Apache-2.0
// A new kind of picture (for example, a depth map) is planned, read and moved like masks, because
// its record says so.
#include <gtest/gtest.h>

#include "headrace/base/registry.h"
#include "headrace/fields/pictures.h"
#include "headrace/pipeline/plan_test_records.h"

namespace headrace::plan_test {
namespace {

constexpr FieldKind kNew{200};

const KindRecord kDepth{
    .name = "test_depth",
    .doc = "An image of one channel whose values are distances.",
    .kind = kNew,
    .form = ValueForm::kPicture,
    .spatial = true,
    .color = ColorMode::kStored,
    .take = [](Field& field) { return take_picture(field, kNew); },
    .begin = begin_picture,
    .follow = [](const FollowContext& way,
                 FieldValue& value) { return follow_picture(way, value, Filter::kNearest); }};
const Register<KindRecord> registered(kDepth);

TEST(ANewKindOfPictures, IsDecodedAsDeclared) {
  const PlanPtr plan = plan_of({files("depth", kNew)}, {resize(6, 8)});
  EXPECT_EQ(output_of(*plan, "depth").state.shape, (Shape{1, 6, 8}));
  const std::vector<uint8_t> bytes =
      jpeg_test::encode({.width = 40, .height = 30, .sampling = {{1, 1}}});
  Buffer file(bytes.size());
  std::memcpy(file.data(), bytes.data(), bytes.size());
  EXPECT_EQ(Processed(plan, Read().file(file)).grid("depth").channels, 1);
}

TEST(ANewKindOfPictures, FollowsAndKeepsItsValues) {
  const Grid grid = recipe_test::random_grid(1, 6, 8, 3);
  const PlanPtr plan = plan_of({pixels("image", {3, 6, 8}), pixels("depth", {1, 6, 8}, kNew)},
                               {flip(1), spec("Grayscale")});
  Processed record(plan, Read().pixels(recipe_test::random_grid(3, 6, 8, 4)).pixels(grid));
  const Grid mirrored =
      recipe_test::make_grid(1, 6, 8, [&](int, int y, int x) { return grid.at(0, y, 7 - x); });
  EXPECT_EQ(record.grid("depth"), mirrored);
}

TEST(ANewKindOfPictures, MustFollowItsImageOrBeRefused) {
  const Schema schema = {pixels("image", {3, 6, 8}), pixels("depth", {1, 6, 8}, kNew)};
  const Pipeline one{{}, {{"image", {flip()}}}, {}},
      apart{{}, {{"image", {flip()}}, {"depth", {flip()}}}, {}};
  for (const Pipeline& pipeline : {one, apart}) {
    EXPECT_EQ(refusal([&] { make_plan(schema, pipeline, {}); }).substr(0, 6), "HR0180");
  }
}

}  // namespace
}  // namespace headrace::plan_test
