// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/splits.h"

#include <gtest/gtest.h>

#include "headrace/base/error.h"

namespace headrace {
namespace {

TEST(Splits, are_known_by_their_names_with_years_and_numbers) {
  for (const char* name : {"train", "Training", "VAL", "valid", "validation", "validating", "test",
                           "testing", "dev", "val2017", "test-1", "train_00"}) {
    EXPECT_TRUE(is_split_name(name)) << name;
  }
  for (const char* name : {"", "cat", "trains", "train-images", "2017", "devil", "val x"}) {
    EXPECT_FALSE(is_split_name(name)) << name;
  }
}

Error refusal(const std::vector<std::string>& splits, bool may_be_classes) {
  try {
    raise_splits("data/", splits, may_be_classes);
  } catch (const Exception& exception) {
    return exception.error();
  }
}

TEST(Splits, are_refused_with_what_to_open) {
  const Error folders = refusal({"train", "val"}, true);
  EXPECT_EQ(folders.code->id, "HR0405");
  EXPECT_EQ(folders.what,
            "the folders in data/ are parts of a dataset, not classes: 'train' and 'val'");
  EXPECT_EQ(folders.hint,
            "open data/train, or data/val; if they are classes, name them in classes=");
  const Error shards = refusal({"a", "b", "c", "d", "e"}, false);
  EXPECT_EQ(shards.what.find("not classes"), std::string::npos);
  EXPECT_EQ(shards.hint, "open data/a, or data/b, or data/c, or data/d");
}

}  // namespace
}  // namespace headrace
