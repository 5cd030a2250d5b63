// SPDX-License-Identifier: Apache-2.0
// No list has the kind: readers of files use its record.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "headrace/formats/format.h"
#include "headrace/loader.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

const std::string kTwoPoints = "HRSCAN\x02\x01\x02\x03\x04";

std::vector<float> points_of(const SourcePtr& source) {
  LoaderOptions options;
  options.batch_size = 1;
  options.shuffle = false;
  options.plan.ragged = Ragged::kList;
  Loader loader(source, {}, options);
  const auto batch = loader.next();
  const TensorView& view = (*batch)["template_scan"].items[0];
  const auto* const numbers = static_cast<const float*>(view.data);
  return {numbers, numbers + element_count(view.shape)};
}

TEST(TemplateScan, AFolderOfScansIsADatasetWhosePointsAreInBatches) {
  const TemporaryFolder folder;
  folder.write("a/1.hrscan", kTwoPoints);
  folder.write("b/2.hrscan", kTwoPoints);
  const SourcePtr source = open_source(folder.path(), {}, {});
  EXPECT_EQ(source->size(), 2);
  EXPECT_EQ(source->schema()[0].name, "template_scan");
  EXPECT_EQ(points_of(source), (std::vector<float>{1, 2, 3, 4}));
}

TEST(TemplateScan, ListsAndManifestsMayReferToScans) {
  const TemporaryFolder folder;
  folder.write("1.hrscan", kTwoPoints);
  const std::string list = folder.write("list.txt", "1.hrscan\n");
  EXPECT_EQ(points_of(open_source(list, {}, {})), (std::vector<float>{1, 2, 3, 4}));
  const std::string manifest = folder.write("all.csv", "file,age,name\n1.hrscan,7,x\n");
  EXPECT_EQ(points_of(open_source(manifest, {}, {})), (std::vector<float>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace headrace
