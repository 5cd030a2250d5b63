// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/value_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace headrace {
namespace {

constexpr size_t kSize = size_t{1} << 17;

TEST(ValueMemory, IsReusedOnceTheValueIsReleased) {
  ValueMemory memory;
  std::shared_ptr<Buffer> first = memory.of(kSize);
  const uint8_t* const at = first->data();
  EXPECT_EQ(first.use_count(), 1);
  EXPECT_NE(memory.of(kSize)->data(), at);
  first.reset();
  EXPECT_EQ(memory.held_bytes(), 2 * kSize);
  bool again = false;
  const std::shared_ptr<Buffer> one = memory.of(kSize - 5), other = memory.of(kSize);
  again |= one->data() == at || other->data() == at;
  EXPECT_TRUE(again);
  EXPECT_EQ(one->size(), kSize - 5);
  EXPECT_EQ(memory.held_bytes(), 0u);
}

TEST(ValueMemory, IsNotUsedForMuchSmallerValues) {
  ValueMemory memory;
  memory.of(4 * kSize).reset();
  EXPECT_EQ(memory.of(kSize)->capacity(), kSize);
}

TEST(ValueMemory, IsReleasedBeyondItsLimit) {
  ValueMemory memory;
  {
    const std::shared_ptr<Buffer> one = memory.of(kSize), other = memory.of(kSize);
  }
  memory.trim(kSize + 7);
  EXPECT_EQ(memory.held_bytes(), kSize);
  memory.trim(0);
  EXPECT_EQ(memory.held_bytes(), 0u);
}

TEST(ValueMemory, MayBeDestroyedBeforeItsValues) {
  std::optional<ValueMemory> memory(std::in_place);
  std::shared_ptr<Buffer> value = memory->of(kSize);
  memory.reset();
  value->data()[kSize - 1] = 1;
  value.reset();
}

}  // namespace
}  // namespace headrace
