// SPDX-License-Identifier: Apache-2.0
// The base class of pixel operators, tested with one that measures: it subtracts each image's
// minimum.
#include "headrace/ops/pixel_op.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

void subtract(const PixelStep& step, const uint8_t* const in[], int channels, int count,
              uint8_t* const out[]) {
  for (int c = 0; c < channels; ++c) {
    for (int i = 0; i < count; ++i) out[c][i] = static_cast<uint8_t>(in[c][i] - step.values[0]);
  }
}
constexpr PixelFunction kSubtract{[](const PixelStep&, int in) { return in == 3 ? 3 : 0; },
                                  subtract, nullptr};

class Darken final : public PixelOp {
 public:
  Darken() : PixelOp("Darken") {}
  Result<void> apply(OpContext& context) const override {
    for (int field : context.fields) {
      const auto pixels = pixels_now(context, field);
      if (!pixels) return pixels.error();
      const Buffer& bytes = (*pixels)->pixels;
      const uint8_t least = *std::min_element(bytes.data(), bytes.data() + bytes.size());
      const PixelStep step{&kSubtract, {static_cast<float>(least)}};
      if (Result<void> done = compute(context, field, step); !done) return done;
    }
    return {};
  }

 private:
  void plan_image(FieldState& image) const override { plan_step({&kSubtract, {}}, image); }
};

TEST(PixelOp, MeasuresTheResultOfEarlierSteps) {
  const Grid grid = recipe_test::make_grid(
      3, 4, 5, [](int c, int y, int x) { return x == 0 ? 3 : 100 + c * 20 + y * 5 + x; });
  TestRecord record({{grid}});
  ASSERT_TRUE(record.recipe().crop({1, 0, 4, 4}));  // the column with value 3 is cropped away
  const Grid darker = record.apply(Darken()).grid();
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 4; ++x) EXPECT_EQ(darker.at(c, y, x), c * 20 + y * 5 + x);
    }
  }
}

TEST(PixelOp, LeavesMasksUnchangedAndRejectsThemIfNamed) {
  const Darken op;
  EXPECT_FALSE(op.takes(FieldKind::kMask));
  EXPECT_TRUE(op.takes(FieldKind::kImage));
  EXPECT_FALSE(op.moves());
  FieldState mask = mask_state();
  EXPECT_EQ(refusal([&] { op.plan(mask); }).substr(0, 62),
            "HR0510 [Darken] \"mask\" is a mask: its values are class ids | r");
  FieldState label{"label", FieldKind::kLabel, DType::kInt64, {}, {}};
  EXPECT_EQ(refusal([&] { op.plan(label); }),
            "HR0510 [Darken] \"label\" is a label field, and the transform works on images");
}

TEST(PixelOp, RejectsUnsupportedChannelsAndDTypes) {
  const Darken op;
  FieldState four = image_state({4, 5, 5}), floats = image_state({3, 5, 5}, DType::kFloat32);
  EXPECT_NE(refusal([&] { op.plan(four); }).find("on the 4 channels of"), std::string::npos);
  EXPECT_NE(refusal([&] { op.plan(floats); }).find("works on uint8, but"), std::string::npos);
  EXPECT_NE(refusal([&] {
              TestRecord({{recipe_test::random_grid(1, 3, 3, 1)}}).apply(op);
            }).find("on the 1 channel that"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::op_test
