// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/shards/shard_files.h"

#include <gtest/gtest.h>

#include "headrace/base/error.h"
#include "headrace/storage/file.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

class ShardFiles : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"t-0000.tar", "t-0001.tar", "t-0010.tar", "p-9.tar", "p-10.tar", "p-1.tar", "x.TAR",
          "x.tar", "t-0010.TAR", ".hidden.tar", "notes.txt", "odd{1}.tar"}) {
      data.write(name, "");
    }
  }
  std::vector<std::string> names(const std::string& pattern,
                                 const std::vector<std::string_view>& suffixes = {}) const {
    std::vector<std::string> out;
    for (const std::string& path : shard_files(data.path() + pattern, suffixes)) {
      out.push_back(path.substr(data.path().size() + 1));
    }
    return out;
  }
  std::string failure(const std::string& pattern) const {
    try {
      names(pattern);
    } catch (const Exception& error) {
      return std::string(error.error().code->id);
    }
    return {};
  }
  using Names = std::vector<std::string>;
  TemporaryFolder data;
};

TEST_F(ShardFiles, braces_give_each_name_in_order) {
  EXPECT_EQ(names("/t-{0000..0001}.tar"), (Names{"t-0000.tar", "t-0001.tar"}));
  EXPECT_EQ(names("/{x,t-0010}.{TAR,tar}").size(), 4u);
}

TEST_F(ShardFiles, wildcards_are_sorted_by_their_numbers) {
  EXPECT_EQ(names("/p-*.tar"), (Names{"p-1.tar", "p-9.tar", "p-10.tar"}));
  EXPECT_EQ(names("/t-000[01].tar"), (Names{"t-0000.tar", "t-0001.tar"}));
}

TEST_F(ShardFiles, a_folder_gives_the_files_with_a_suffix) {
  EXPECT_EQ(names("", {".tar"}).size(), 10u);
  EXPECT_TRUE(is_shard_folder(data.path(), {".tar"}));
  EXPECT_FALSE(is_shard_folder(data.path(), {".rec"}));
  data.write("folder/x.jpg", "");
  EXPECT_FALSE(is_shard_folder(data.path(), {".tar"}));
}

TEST_F(ShardFiles, an_existing_file_takes_precedence_over_a_pattern) {
  EXPECT_EQ(names("/odd{1}.tar"), (Names{"odd{1}.tar"}));
  EXPECT_FALSE(is_shard_pattern(data.path() + "/odd{1}.tar"));
  EXPECT_TRUE(is_shard_pattern(data.path() + "/odd{2}.tar"));
}

TEST_F(ShardFiles, each_line_is_a_separate_pattern) {
  const std::string path = data.path();
  EXPECT_EQ(shard_files(path + "/x.TAR\n" + path + "/p-*.tar"),
            (Names{path + "/x.TAR", path + "/p-1.tar", path + "/p-9.tar", path + "/p-10.tar"}));
}

TEST_F(ShardFiles, wildcards_that_match_no_file_match_folders) {
  data.write("a_lmdb/data.mdb", "");
  data.write("b_lmdb/data.mdb", "");
  EXPECT_EQ(names("/?_lmdb"), (Names{"a_lmdb", "b_lmdb"}));
  data.write("c_lmdb", "");
  EXPECT_EQ(names("/?_lmdb"), (Names{"c_lmdb"}));
}

TEST_F(ShardFiles, invalid_patterns_are_rejected) {
  EXPECT_EQ(failure("/t-{0000..0002}.tar"), "HR0201");  // 0002 does not exist
  EXPECT_EQ(failure("/none-*.tar"), "HR0413");
  EXPECT_EQ(failure("/t-{0001..0000}.tar"), "HR0413");
  EXPECT_EQ(failure("/t-{0..99999999999}.tar"), "HR0413");
  EXPECT_EQ(failure("/{0..999999}{0..999999}.tar"), "HR0413");
  EXPECT_EQ(failure("/t-{0001.tar"), "HR0413");
  EXPECT_EQ(failure("/none.tar"), "HR0201");
}

TEST_F(ShardFiles, a_path_is_a_shard_or_a_folder_of_shards) {
  const auto is_shard = [](const std::string& file) { return file_begins_with(file, "SHARD"); };
  data.write("shards/a.bin", "");
  data.write("other/a.txt", "SHARD");
  const std::string shard = data.write("any.name", "SHARD and more");
  EXPECT_TRUE(is_shard_path(data / "shards", {".bin"}, is_shard));
  EXPECT_TRUE(is_shard_path(shard, {".bin"}, is_shard));
  EXPECT_FALSE(is_shard_path(data / "other", {".bin"}, is_shard));
  EXPECT_FALSE(is_shard_path(data.write("short", "SHAR"), {".bin"}, is_shard));
  EXPECT_FALSE(is_shard_path(data / "shards/a.bin", {".bin"}, is_shard));
  EXPECT_FALSE(is_shard_path(data / "none", {".bin"}, is_shard));
}

}  // namespace
}  // namespace headrace
