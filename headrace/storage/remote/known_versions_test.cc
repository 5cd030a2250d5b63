// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/known_versions.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "headrace/base/random.h"

namespace headrace {
namespace {

using Version = KnownVersions::Version;

uint64_t path_number(uint64_t number) { return hash_name("s3://b/" + std::to_string(number)); }

TEST(VersionsOfObjects, AreTheLastOnesThatWereSet) {
  KnownVersions known;
  EXPECT_FALSE(known.find(path_number(0)));
  known.forget(path_number(0));
  constexpr uint64_t kObjects = 10'000;
  for (uint64_t i = 0; i < kObjects; ++i) known.set(path_number(i), {.inode = 1, .size = i});
  for (uint64_t i = 0; i < kObjects; i += 2) known.set(path_number(i), {.inode = 2, .size = i});
  for (uint64_t i = 0; i < kObjects; i += 5) known.forget(path_number(i));
  for (uint64_t i = 0; i < kObjects; ++i) {
    const auto found = known.find(path_number(i));
    ASSERT_EQ(found.has_value(), i % 5 != 0) << i;
    if (!found) continue;
    EXPECT_EQ(*found, (Version{.inode = i % 2 == 0 ? 2u : 1u, .size = i}));
  }
  EXPECT_FALSE(known.find(path_number(kObjects)));
  known.set(path_number(7), {.inode = 0, .size = 3});
  EXPECT_FALSE(known.find(path_number(7))) << "a version that cannot be told from others";
  known.clear();
  EXPECT_FALSE(known.find(path_number(1)));
}

}  // namespace
}  // namespace headrace
