// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory/slot_rings.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

constexpr int64_t kRows = 8;

// A field of 64 KiB a batch, which has a ring, and a label, which has none.
std::shared_ptr<const Plan> plan() {
  return make_plan({{.name = "value", .dtype = DType::kInt64, .shape = {1024}},
                    {.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64}},
                   {}, {});
}

TEST(SlotRingsTest, OnlyLargeFieldsHaveARingAndABatchTakesASlotOfEach) {
  int returned = 0;
  const SlotRings rings(*plan(), {}, kRows, 3, nullptr, [&] { ++returned; });
  EXPECT_TRUE(rings.of(0));
  EXPECT_FALSE(rings.of(1));
  EXPECT_EQ(rings.take_finished(0), nullptr) << "no device finishes anything";
  std::shared_ptr<void> first = rings.take(0, 64), second = rings.take(0, 64);
  const std::shared_ptr<void> labels = rings.take(1, 64);
  EXPECT_TRUE(labels);
  EXPECT_EQ(rings.max_out(), 2);
  EXPECT_EQ(rings.mapped_bytes(), 2 * kRows * 1024 * sizeof(int64_t));
  EXPECT_FALSE(rings.may_open(false)) << "the third is spare";
  EXPECT_TRUE(rings.may_open(true));
  std::shared_ptr<void> third = rings.take(0, 64);
  EXPECT_FALSE(rings.may_open(true));
  first.reset();
  EXPECT_EQ(returned, 1);
  EXPECT_TRUE(rings.may_open(true));
}

TEST(SlotRingsTest, LeasedSlotsOutliveTheRings) {
  int returned = 0;
  std::shared_ptr<void> slot;
  {
    const SlotRings rings(*plan(), {}, kRows, 2, nullptr, [&] { ++returned; });
    slot = rings.take(0, 64);
  }
  static_cast<char*>(slot.get())[kRows * 1024 * sizeof(int64_t) - 1] = 1;
  slot.reset();
  EXPECT_EQ(returned, 0);
}

}  // namespace
}  // namespace headrace
