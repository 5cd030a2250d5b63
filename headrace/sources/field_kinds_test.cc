// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/field_kinds.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/sources/columns/columns.h"
#include "headrace/sources/combined/combined.h"
#include "headrace/sources/source_test_reads.h"

namespace headrace {
namespace {

Field tensor(const std::string& name, Shape shape, DType dtype = DType::kFloat32) {
  return {.name = name, .dtype = dtype, .shape = std::move(shape)};
}

// A column of two records of uint8.
Column bytes(const std::string& name, const Shape& shape) {
  const auto count = static_cast<size_t>(2 * element_count(shape));
  auto values = std::make_shared<std::vector<uint8_t>>(count);
  for (size_t i = 0; i < count; ++i) (*values)[i] = static_cast<uint8_t>(i);
  return {name, ArrayColumn{values->data(), DType::kUInt8, 2, shape, values}};
}

std::string failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "accepted";
}

const Field& field_of(const Source& source, const std::string& name) {
  return *std::ranges::find(source.schema(), name, &Field::name);
}

TEST(EvidentKind, OfTensorsNamedLikeBoxesIsBoxes) {
  for (const char* name : {"boxes", "bbox", "bboxes", "gt_boxes", "image/object/bbox"}) {
    EXPECT_EQ(evident_kind(tensor(name, {-1, 4}), {}), FieldKind::kBoxes) << name;
  }
  for (const char* name : {"image/object/bbox/xmin", "bbox_width", "xmin", "ymax", "box_cx"}) {
    EXPECT_EQ(evident_kind(tensor(name, {-1}), {}), FieldKind::kBoxes) << name;
  }
  for (const char* name : {"image/object/bbox/label", "box_count", "width", "x", "boxing"}) {
    EXPECT_EQ(evident_kind(tensor(name, {-1}), {}), FieldKind::kTensor) << name;
  }
  EXPECT_EQ(evident_kind(tensor("boxes", {7}), {}), FieldKind::kTensor);
}

TEST(EvidentKind, OfKeypointsAndMasksFollowsTheirNames) {
  EXPECT_EQ(evident_kind(tensor("keypoints", {-1, 17, 3}), {}), FieldKind::kKeypoints);
  EXPECT_EQ(evident_kind(tensor("instance_masks", {-1, -1, -1}), {}), FieldKind::kMasks);
  EXPECT_EQ(evident_kind(tensor("attention_mask", {77}), {}), FieldKind::kTensor);
}

TEST(EvidentKind, OfAnImageSizedMap) {
  const Schema record = {{.name = "image", .kind = FieldKind::kImage, .shape = {3, 32, 48}}};
  EXPECT_EQ(evident_kind(tensor("depth", {32, 48}), record), FieldKind::kMasks);
  EXPECT_EQ(evident_kind(tensor("flow", {2, 32, 48}), record), FieldKind::kMasks);
  EXPECT_EQ(evident_kind(tensor("valid", {32, 48}, DType::kBool), record), FieldKind::kMasks);
  EXPECT_EQ(evident_kind(tensor("kernel", {48, 32}), record), FieldKind::kTensor);
  EXPECT_EQ(evident_kind(tensor("depth", {32, 48}), {}), FieldKind::kTensor);
}

TEST(WithKinds, ArraysBecomeMasksAndBack) {
  const SourcePtr source = records({bytes("image", {3, 4, 5}), bytes("seg", {4, 5})});
  EXPECT_EQ(field_of(*source, "seg").kind, FieldKind::kTensor);
  const SourcePtr said = with_kinds(source, {{"seg", FieldKind::kMask}});
  EXPECT_EQ(field_of(*said, "seg").kind, FieldKind::kMask);
  EXPECT_EQ(field_of(*said, "seg").shape, (Shape{1, 4, 5}));
  EXPECT_NE(said->fingerprint(), source->fingerprint()) << "other values are decoded";
  const RecordData record = read_record(*said, 1);
  ASSERT_TRUE(record.result);
  EXPECT_EQ(record.fields[1].bytes[0], 20);
  const SourcePtr boxes = with_kinds(source, {{"seg", FieldKind::kMasks}});
  EXPECT_EQ(boxes->fingerprint(), source->fingerprint()) << "the same values";
}

TEST(WithKinds, ImpossibleArgumentsAreRefused) {
  const SourcePtr source = records({bytes("image", {3, 4, 5}), bytes("codes", {7})});
  EXPECT_TRUE(failure([&] { with_kinds(source, {{"codes", FieldKind::kMask}}); })
                  .starts_with("HR0181 unsupported field kind: kinds= declares that \"codes\" is "
                               "\"mask\", but its values have a different form"));
  EXPECT_NE(failure([&] {
              with_kinds(source, {{"imag", FieldKind::kMask}});
            }).find("did you mean \"image\"?"),
            std::string::npos);
  EXPECT_NE(failure([] { kinds_from({"seg=maks"}); }).find("\"maks\", which is not a kind"),
            std::string::npos);
}

TEST(WithKinds, ABoxFormatIsDeclaredOnce) {
  const auto boxes_as = [](BoxFormat format) {
    Meaning meaning(FieldKind::kBoxes);
    meaning.box_format = format;
    return meaning;
  };
  const Meaning xyxy = boxes_as(BoxFormat::kXYXY), xywh = boxes_as(BoxFormat::kXYWH);
  const SourcePtr source = records({bytes("image", {3, 4, 5}), bytes("rows", {2, 4})});
  const SourcePtr said = with_kinds(source, {{"rows", xyxy}});
  EXPECT_EQ(field_of(*said, "rows").box_format, BoxFormat::kXYXY);
  const auto said_again = [&](const Meaning& meaning) {
    return failure([&] { with_kinds(said, {{"rows", meaning}}); });
  };
  EXPECT_EQ(said_again(xyxy), "accepted");
  EXPECT_EQ(said_again(FieldKind::kBoxes), "accepted");
  EXPECT_NE(said_again(xywh).find("\"boxes:xywh\", but the source says xyxy"), std::string::npos);
  const SourcePtr tensor = with_kinds(said, {{"rows", FieldKind::kTensor}});
  EXPECT_EQ(field_of(*tensor, "rows").box_format, BoxFormat::kUnspecified);
  const SourcePtr anew = with_kinds(tensor, {{"rows", xywh}});
  EXPECT_EQ(field_of(*anew, "rows").box_format, BoxFormat::kXYWH) << "whose source was wrong";
}

TEST(AnImageThatIsCalledAMask, IsAnErrorUntilItsKindIsDeclared) {
  const auto named = [](const std::string& name) {
    return records({{name, PathColumn{{"a.png", "b.png"}}}, bytes("image", {3, 4, 5})});
  };
  EXPECT_NE(failure([&] {
              with_evident_kinds(named("gt_mask"), {});
            }).find("kinds={\"gt_mask\": \"mask\"} for class ids, kinds={\"gt_mask\": \"image\"}"),
            std::string::npos);
  EXPECT_EQ(
      failure([&] { with_evident_kinds(named("gt_mask"), {{"gt_mask", FieldKind::kImage}}); }),
      "accepted");
  EXPECT_EQ(failure([&] { with_evident_kinds(named("mask"), {}); }), "accepted") << "known as one";
  EXPECT_EQ(failure([&] { with_evident_kinds(named("unmasked"), {}); }), "accepted");
}

TEST(ARenamedImage, StaysAnErrorUntilItsKindIsDeclared) {
  const SourcePtr left = records({bytes("image", {3, 4, 5}), {"n", TextColumn{{"a", "b"}}}});
  const SourcePtr right = records({bytes("image", {3, 4, 5})});
  JoinOptions options{.on = "key", .rename = {{"image", "mask"}}, .kinds = {}};
  EXPECT_EQ(failure([&] { join(left, right, options); }).substr(0, 6), "HR0182");
  options.kinds = {"mask=mask"};
  EXPECT_EQ(field_of(*join(left, right, options), "mask").kind, FieldKind::kMask);
  options.kinds = {"mask=image"};
  EXPECT_EQ(field_of(*join(left, right, options), "mask").kind, FieldKind::kImage);
  options = {.on = "key", .rename = {{"image", "after"}}, .kinds = {}};
  EXPECT_EQ(field_of(*join(left, right, options), "after").kind, FieldKind::kImage);
}

}  // namespace
}  // namespace headrace
