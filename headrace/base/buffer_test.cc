// SPDX-License-Identifier: Apache-2.0
// Promise: a buffer has the requested bytes followed by zeros, or the allocation fails.
#include "headrace/base/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace headrace {
namespace {

TEST(Buffer, HasZerosAfterItsBytes) {
  Buffer buffer(100);
  std::fill_n(buffer.data(), 100, uint8_t{7});
  buffer.resize(10);
  EXPECT_EQ(buffer.data()[9], 7);
  EXPECT_TRUE(std::all_of(buffer.data() + 10, buffer.data() + 10 + Buffer::kPadding,
                          [](uint8_t byte) { return byte == 0; }));
}

TEST(Buffer, RefusesSizesThatOverflow) {
  Buffer buffer(10);
  for (const size_t size : {SIZE_MAX, SIZE_MAX - Buffer::kPadding + 1}) {
    EXPECT_THROW(buffer.resize(size), std::bad_alloc);
    EXPECT_EQ(buffer.size(), size_t{10});  // as before
  }
}

}  // namespace
}  // namespace headrace
