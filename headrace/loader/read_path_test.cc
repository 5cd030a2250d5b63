// SPDX-License-Identifier: Apache-2.0
// Why the caches of a loader keep less than they should.
#include "headrace/loader/read_path.h"

#include <gtest/gtest.h>

#include <string>

#include "headrace/sources/columns/columns.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace read_path_test {

TEST(ReadPath, SaysOnceWhyRecordsOfSharedFilesAreNotCached) {
  const TemporaryFolder folder;
  const PathColumn parts{.paths = {folder.write("robot.mp4", "frames of all records")},
                         .which = {0, 0, 0}};
  const SourcePtr source = records({{"front", parts, FieldKind::kBytes}});
  LoaderOptions options;
  options.cache = size_t{1} << 20;
  options.row_index = RowIndexUse::kOff;
  ReadPath path(source, {true}, options);
  EXPECT_EQ(path.cache_bytes(), 0u) << "all of memory_limit is left";
  const std::string why = "many records share the files of 'front'";
  EXPECT_EQ(path.cache_text().find("none: " + why), 0u) << path.cache_text();
  EXPECT_EQ(path.caution().find("cache= keeps no records: " + why), 0u);
  EXPECT_EQ(path.caution(), "");
  EXPECT_EQ(ReadPath(source, {false}, options).caution(), "");
}

}  // namespace read_path_test
}  // namespace headrace
