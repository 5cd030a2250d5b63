// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>

#include "headrace/formats/format.h"
#include "headrace/loader.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

TEST(TemplateFormat, IsOpenedAndDelivered) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/labels.hrtemplate";
  std::ofstream(path) << "abc";
  LoaderOptions options;
  options.batch_size = 3;
  options.threads = 1;
  options.memory_limit = size_t{256} << 20;
  Loader loader(open_source(path), {}, options);
  const std::optional<Batch> batch = loader.next();
  ASSERT_TRUE(batch);
  const auto* labels = static_cast<const int64_t*>((*batch)["label"].view.data);
  EXPECT_EQ(std::vector<int64_t>(labels, labels + 3), (std::vector<int64_t>{'a', 'b', 'c'}));
}

}  // namespace
}  // namespace headrace
