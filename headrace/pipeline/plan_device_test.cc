// SPDX-License-Identifier: Apache-2.0
// Transforms allowed after ToDevice, and the errors for all others.
#include <gtest/gtest.h>

#include "headrace/pipeline/plan_test_records.h"

namespace headrace::plan_test {
namespace {

Spec to_device() { return spec("ToDevice"); }
Spec erase(const ParamValue& value = 0.0) { return spec("RandomErasing", {{"value", value}}); }

std::string refused(const Specs& transforms, const Schema& schema) {
  try {
    make_plan(schema, {transforms, {}, {}}, {});
    return "nothing";
  } catch (const Exception& exception) {
    return std::string(exception.error().code->id) + " " + exception.what();
  }
}

Schema pictures() { return {pixels("image", {3, 20, 30}), label()}; }

TEST(ToDevice, FlipsTablesMapsOneRectangleAndMixingMayFollowIt) {
  const Specs behind{flip(),
                     spec("RandomPosterize", {{"bits", int64_t{3}}}),
                     spec("RandomEqualize"),
                     spec("ColorJitter", {{"brightness", Floats{0.4}}, {"contrast", Floats{0.4}}}),
                     maybe(0.5, {spec("RandomInvert")}),
                     to_float(),
                     normalize(),
                     erase(),
                     flip(),
                     spec("MixUp", {{"num_classes", int64_t{10}}})};
  Specs list{crop(16), to_device()};
  list.insert(list.end(), behind.begin(), behind.end());
  EXPECT_EQ(refused(list, pictures()), "nothing");
}

TEST(ToDevice, FramesOfClipsAreAcceptedLikeImages) {
  const Schema videos = {{"video", FieldKind::kVideo, DType::kUInt8, {-1, 3, -1, -1}, true},
                         label()};
  const Spec clips =
      spec("UniformVideoClips", {{"num_frames", int64_t{4}}, {"num_clips", int64_t{2}}});
  EXPECT_EQ(refused({clips, crop(16), to_device(), flip(), to_float(), normalize(), erase(),
                     spec("MixUp", {{"num_classes", int64_t{10}}})},
                    videos),
            "nothing");
  const std::string blurred =
      refused({clips, to_device(), spec("GaussianBlur", {{"kernel_size", Ints{3}}})}, videos);
  EXPECT_EQ(blurred.find("HR0138"), 0u) << blurred;
  const std::string uncut = refused({to_device(), clips, crop(16)}, videos);
  EXPECT_EQ(uncut.find("HR0139"), 0u) << uncut;
}

TEST(ToDevice, UnsupportedStepsAreNamedWithAlternatives) {
  const auto expect_refused = [](const Specs& behind, const std::string& name) {
    Specs list{to_device()};
    list.insert(list.end(), behind.begin(), behind.end());
    const std::string error = refused(list, pictures());
    EXPECT_EQ(error.find("HR0138"), 0u) << error;
    EXPECT_NE(error.find(name), std::string::npos) << error;
    for (const char* can : {"RandomHorizontalFlip", "ToDtype", "Normalize", "RandomErasing",
                            "AdjustGamma", "RandomSolarize", "MixUp", "CutMix"}) {
      EXPECT_NE(error.find(can), std::string::npos) << can << " in: " << error;
    }
    EXPECT_EQ(error.find("GaussianBlur, "), std::string::npos) << error;
  };
  expect_refused({resize(8, 8)}, "Resize(");
  expect_refused({flip(), crop(8)}, "RandomCrop(");
  expect_refused({spec("RandomVerticalFlip")}, "RandomVerticalFlip()");
  expect_refused({spec("GaussianBlur", {{"kernel_size", Ints{3}}})}, "GaussianBlur(");
  expect_refused({maybe(0.5, {spec("RandomGrayscale")})}, "RandomGrayscale(");
  expect_refused({spec("ColorJitter", {{"hue", Floats{0.1}}})}, "ColorJitter(");
  expect_refused({erase(std::string("random"))}, "RandomErasing(");
  expect_refused({erase(), erase()}, "a device erases only once, as the last transform");
  expect_refused({erase(), to_float()}, "a device erases only once, as the last transform");
  expect_refused({to_float(), spec("RandomInvert")}, "a device has lookup tables only for uint8");
}

TEST(ToDevice, OtherFieldsAreUnaffected) {
  const Schema schema{pixels("image", {3, 20, 30}), pixels("small", {3, 8, 8}), label()};
  EXPECT_EQ(
      refused({spec("ToDevice", {}, {"image"}), spec("Resize", {{"size", Ints{4, 4}}}, {"small"})},
              schema),
      "nothing");
  const PlanPtr plan = plan_of(
      schema, {spec("Resize", {{"size", Ints{4, 4}}}, {"small"}), to_device(), to_float()}, {});
  ASSERT_TRUE(plan->device_point(0) && plan->device_point(1));
  EXPECT_TRUE(plan->device_point(0)->from_start);
  EXPECT_FALSE(plan->device_point(1)->from_start);
  EXPECT_TRUE(plan->device_point(0)->has_work);
  EXPECT_FALSE(plan->device_point(2));
}

TEST(ToDevice, IsAllowedOnceForUint8Images) {
  const auto expect_no_place = [](const Specs& list, const std::string& why) {
    const std::string error = refused(list, pictures());
    EXPECT_EQ(error.find("HR0139"), 0u) << error;
    EXPECT_NE(error.find(why), std::string::npos) << error;
  };
  expect_no_place({maybe(0.5, {to_device()})}, "that does not apply to every record");
  expect_no_place({to_device(), to_device()}, "is already on the device");
  expect_no_place({to_float(), to_device()}, "put it before ToDtype");
  EXPECT_EQ(refused({to_device()}, {label()}).find("HR0139"), 0u);
}

}  // namespace
}  // namespace headrace::plan_test
