// SPDX-License-Identifier: Apache-2.0
// The contract of every registered kind, and the possible states of a field.
#include "headrace/fields/kind.h"

#include <gtest/gtest.h>

#include "headrace/base/registry.h"

namespace headrace {
namespace {

TEST(EveryKind, IsFoundByItsNumberAndItsName) {
  ASSERT_EQ(all_kinds().size(), Registry<KindRecord>::all().size()) << "two of one number";
  for (const KindRecord* kind : all_kinds()) {
    SCOPED_TRACE(kind->name);
    EXPECT_EQ(find_kind(kind->kind), kind);
    EXPECT_EQ(find_kind(kind->name), kind);
    EXPECT_GT(kind->doc.size(), 30u);
    EXPECT_TRUE(kind->doc.ends_with("."));
  }
  EXPECT_EQ(find_kind("boxen"), nullptr);
  EXPECT_EQ(find_kind(static_cast<FieldKind>(200)), nullptr);
}

TEST(EveryKind, DescribesItsValues) {
  for (const KindRecord* kind : all_kinds()) {
    EXPECT_NE(kind->begin, nullptr) << kind->name;
    EXPECT_NE(kind->take, nullptr) << kind->name;
  }
}

// A value without coordinates cannot move, and one that moves has the picture's coordinates.
TEST(EveryKind, FollowsImagesOnlyIfItHasPositionsInThem) {
  for (const KindRecord* kind : all_kinds()) {
    EXPECT_TRUE(kind->spatial || !kind->follow) << kind->name;
    EXPECT_TRUE(kind->follow || (!kind->wants && !kind->plan)) << kind->name;
    EXPECT_TRUE(kind->form != ValueForm::kPicture || kind->follow) << kind->name;
  }
}

// Packs store them.
TEST(Kinds, KeepTheirNumbers) {
  std::vector<std::string_view> names;
  for (const KindRecord* kind : all_kinds()) names.push_back(kind->name);
  names.resize(9);
  EXPECT_EQ(names, (std::vector<std::string_view>{"image", "mask", "label", "tensor", "text",
                                                  "bytes", "boxes", "keypoints", "masks"}));
}

// The kinds that the field can be, as text. Kinds that were added later have their own tests.
std::string kinds_of(const Field& field) {
  std::string out;
  for (const KindRecord* kind : all_kinds()) {
    Field taken = field;
    if (kind->kind > FieldKind::kMasks || !kind->take(taken)) continue;
    EXPECT_EQ(taken.kind, kind->kind);
    out += std::string(kind->name) + " ";
  }
  return out;
}

TEST(Fields, MayBeOfAnyKindThatFitsTheirValues) {
  using enum FieldKind;
  EXPECT_EQ(kinds_of({"x", kImage, DType::kUInt8, {-1, -1, -1}, true}), "image mask bytes ");
  EXPECT_EQ(kinds_of({"x", kBytes, DType::kUInt8, {}, false}), "image mask bytes ");
  EXPECT_EQ(kinds_of({"x", kText, DType::kUInt8, {}, false}), "text ");
  EXPECT_EQ(kinds_of({"x", kTensor, DType::kInt64, {}, false}), "label tensor boxes keypoints ");
  EXPECT_EQ(kinds_of({"x", kTensor, DType::kUInt8, {6, 8}, false}),
            "image mask tensor boxes keypoints masks ");
  EXPECT_EQ(kinds_of({"x", kTensor, DType::kFloat32, {3, 6, 8}, false}),
            "image mask tensor boxes keypoints masks ");
  EXPECT_EQ(kinds_of({"x", kTensor, DType::kInt32, {3, 6, 8}, false}),
            "tensor boxes keypoints masks ");
}

TEST(Fields, AMatrixOfBytesIsOneChannel) {
  Field field{"x", FieldKind::kTensor, DType::kUInt8, {6, 8}, false};
  ASSERT_TRUE(record_of(FieldKind::kMask).take(field));
  EXPECT_EQ(field.shape, (Shape{1, 6, 8}));
}

}  // namespace
}  // namespace headrace
