// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/named_files.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace headrace {
namespace {

TEST(NamedFiles, LeaveTheFolderOnlyByRootsAndDots) {
  for (const char* name : {"a.jpg", "a/b.jpg", "...", "..a/b", "a..", "a/.b", "./a", "a//b"}) {
    EXPECT_TRUE(stays_inside(name)) << name;
  }
  for (const char* name : {"/etc/passwd", "..", "../a", "a/..", "a/../b", "a/..//b", "", "//a"}) {
    EXPECT_FALSE(stays_inside(name)) << name;
  }
  EXPECT_FALSE(stays_inside(std::string_view("a\0b", 3)));
}

TEST(NamedFiles, NeverReferToAnotherStorage) {
  for (const char* name : {"memory://volume/a.jpg", "https://host/a.jpg", "file:///etc/passwd"}) {
    EXPECT_FALSE(stays_inside(name)) << name;
    EXPECT_TRUE(lies_outside(name, ".")) << name;
  }
  EXPECT_TRUE(stays_inside("a:b/c.jpg"));
  EXPECT_TRUE(stays_inside("a/b://c.jpg"));
  EXPECT_FALSE(lies_outside("data/s3://bucket/a.jpg", "data"));
}

TEST(NamedFiles, AreBelowTheirRootInAnySpelling) {
  const std::string here = std::filesystem::current_path().string();
  for (const std::string& root : {std::string("."), here, here + "/", std::string("./")}) {
    for (const std::string& path : {here + "/a.jpg", here + "/b/a.jpg", here + "/b/../a.jpg"}) {
      EXPECT_FALSE(lies_outside(path, root)) << path << " in " << root;
    }
    for (const std::string& path : {here + "x/a.jpg", here + "/../a.jpg", std::string("/a.jpg")}) {
      EXPECT_TRUE(lies_outside(path, root)) << path << " in " << root;
    }
  }
  EXPECT_FALSE(lies_outside("data/a.jpg", "data/"));
  EXPECT_FALSE(lies_outside("data/a.jpg", "data"));
  EXPECT_FALSE(lies_outside("data//a.jpg", "data"));
  EXPECT_TRUE(lies_outside("data2/a.jpg", "data"));
  EXPECT_TRUE(lies_outside("data/../a.jpg", "data/"));
  EXPECT_FALSE(lies_outside("/anything", ""));
}

}  // namespace
}  // namespace headrace
