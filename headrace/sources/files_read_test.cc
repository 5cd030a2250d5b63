// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/files_read.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

// A file for each of its records.
class Files final : public Source {
 public:
  explicit Files(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  int64_t size() const override { return int64_t(paths_.size()); }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kFiles; }
  void read(std::span<const int64_t>, const std::vector<bool>&,
            std::span<RecordData>) const override {}
  std::string key(int64_t index) const override { return paths_[size_t(index)]; }
  uint64_t fingerprint() const override { return 0; }
  std::string description() const override { return {}; }

 private:
  std::vector<std::string> paths_;
  Schema schema_;
};

TEST(FilesRead, ReportsAChangedFileButNotAMissingOne) {
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (size_t i = 0; i < 20; ++i) {
    paths.push_back(folder.path() + "/" + std::to_string(i / 2));  // two records in each
    std::ofstream(paths.back()) << "old";
  }
  FilesRead files(std::make_shared<Files>(paths), {true});
  EXPECT_EQ(files.size(), paths.size() / 2);
  std::filesystem::remove(paths[0]);
  EXPECT_EQ(files.changed(), std::nullopt);
  std::ofstream(paths[9]) << "newer";
  EXPECT_EQ(files.changed(), paths[9]);
}

TEST(FilesRead, ChecksDifferentFilesEachTime) {
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (size_t i = 0; i < 10; ++i) {
    paths.push_back(folder.path() + "/" + std::to_string(i));
    std::ofstream(paths.back()) << "old";
  }
  FilesRead files(std::make_shared<Files>(paths), {true});
  std::ofstream(paths.back()) << "newer";
  EXPECT_EQ(files.changed(9), std::nullopt);
  EXPECT_EQ(files.changed(9), paths.back());
}

}  // namespace
}  // namespace headrace
