// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/paths.h"

#include <gtest/gtest.h>

#include "headrace/storage/storage.h"

namespace headrace {
namespace {

TEST(Paths, OfFilesFollowTheFileSystemsRules) {
  EXPECT_EQ(normal_path("a/./b//c/../d"), "a/b/d");
  EXPECT_EQ(parent_path("a/b"), "a");
  EXPECT_EQ(parent_path("b"), "");
  EXPECT_EQ(parent_path("/b"), "/");
  EXPECT_EQ(last_name("a/b.tar"), "b.tar");
  EXPECT_EQ(stem_of("a/instances_val.json"), "instances_val");
  EXPECT_EQ(stem_of("a/.hidden"), ".hidden");
  EXPECT_EQ(absolute_path("a/../b"), current_folder() + "/b");
  EXPECT_EQ(absolute_path("/a/./b"), "/a/b");
  EXPECT_TRUE(is_relative_path("a/b"));
  EXPECT_FALSE(is_relative_path("/a"));
}

TEST(Paths, OfFoldersWhoseNamesEndInAColonFollowTheFileSystemsRules) {
  EXPECT_EQ(scheme_of("/data/s3://bucket"), "");
  EXPECT_EQ(absolute_path("data/s3://bucket"), current_folder() + "/data/s3:/bucket");
  EXPECT_TRUE(is_relative_path("data/s3://bucket"));
  EXPECT_EQ(scheme_of("s3://bucket"), "s3");
}

TEST(Paths, OfSignedAddressesDoNotKeepTheirSecrets) {
  const std::string plain = stable_path("https://h/a/x.tar");
  EXPECT_EQ(plain, "https://h/a/x.tar");
  EXPECT_EQ(stable_path("https://me:word@h/a/x.tar?sig=secret&se=2026-11-28"), plain);
  EXPECT_EQ(stable_path("https://h/a/x.tar?X-Amz-Signature=secret&X-Amz-Date=1#a"), plain);
  const std::string one = stable_path("https://h/get?file=a&Signature=secret");
  EXPECT_NE(one, stable_path("https://h/get?file=b"));
  EXPECT_EQ(one, stable_path("https://h/get?file=a&Signature=other"));
  EXPECT_EQ(one.find("file=a"), std::string::npos);            // it may be a secret
  EXPECT_EQ(stable_path("s3://b/a?sig=x"), "s3://b/a?sig=x");  // a key as any other
}

TEST(Paths, KeepTheirStorage) {
  EXPECT_EQ(normal_path("memory://a/./b//c/../d"), "memory://a/b/d");
  EXPECT_EQ(absolute_path("memory://a/b"), "memory://a/b");
  EXPECT_EQ(normal_path("https://h/a/../b?u=x//y/../z"), "https://h/b?u=x//y/../z");
  EXPECT_EQ(parent_path("memory://a/b"), "memory://a");
  EXPECT_EQ(parent_path("memory://a"), "");
  EXPECT_EQ(last_name("memory://a/b.tar"), "b.tar");
  EXPECT_FALSE(is_relative_path("memory://a"));
}

}  // namespace
}  // namespace headrace
