// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/library_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace headrace {
namespace {

TEST(LibraryFolder, IsResolvedFromAPathButNotFromABareName) {
  EXPECT_EQ(folder_of_loaded_file("a.out"), "");  // found in PATH
  EXPECT_EQ(folder_of_loaded_file(nullptr), "");
  EXPECT_EQ(folder_of_loaded_file("/usr/lib/a.so"), "/usr/lib");
  EXPECT_EQ(folder_of_loaded_file("build/a.so"), std::filesystem::current_path() / "build");
}

TEST(LibraryFolder, IsAbsoluteAndComputedOnce) {
  const std::filesystem::path& before = library_folder();
  EXPECT_TRUE(before.is_absolute());
  EXPECT_EQ(&library_folder(), &before);
}

}  // namespace
}  // namespace headrace
