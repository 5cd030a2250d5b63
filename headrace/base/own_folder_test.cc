// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/own_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace headrace {
namespace {

TEST(OwnFolder, IsResolvedFromAPathButNotFromABareName) {
  EXPECT_EQ(folder_of_loaded("a.out"), "");  // found in PATH
  EXPECT_EQ(folder_of_loaded(nullptr), "");
  EXPECT_EQ(folder_of_loaded("/usr/lib/a.so"), "/usr/lib");
  EXPECT_EQ(folder_of_loaded("build/a.so"), std::filesystem::current_path() / "build");
}

TEST(OwnFolder, IsAbsoluteAndComputedOnce) {
  const std::filesystem::path& before = own_folder();
  EXPECT_TRUE(before.is_absolute());
  EXPECT_EQ(&own_folder(), &before);
}

}  // namespace
}  // namespace headrace
