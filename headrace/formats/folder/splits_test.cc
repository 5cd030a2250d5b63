// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/splits.h"

#include <gtest/gtest.h>

#include "headrace/base/error.h"

namespace headrace {
namespace {

TEST(Splits, are_recognized_by_their_names_with_years_and_numbers) {
  for (const char* name : {"train", "Training", "VAL", "valid", "validation", "validating", "test",
                           "testing", "dev", "val2017", "test-1", "train_00"}) {
    EXPECT_TRUE(is_split_name(name)) << name;
  }
  for (const char* name : {"", "cat", "trains", "train-images", "2017", "devil", "val x"}) {
    EXPECT_FALSE(is_split_name(name)) << name;
  }
}

TEST(Splits, are_recognized_as_words_in_names) {
  const auto split = [](const char* name) {
    const auto found = split_word(name);
    return found ? std::string(found->split) + " " + found->rest : std::string("-");
  };
  EXPECT_EQ(split("train-00000-of-00001"), "train of");
  EXPECT_EQ(split("seg_TEST"), "test seg");
  EXPECT_EQ(split("imagenet.validation.2012"), "val imagenet");
  EXPECT_EQ(split("trainset"), "train ");
  for (const char* name : {"", "0001", "constraint-1", "train_test", "latest", "training2val"}) {
    EXPECT_EQ(split(name), "-") << name;
  }
}

TEST(Splits, of_folders_have_similar_names) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(folders_of_splits({"seg_train", "seg_test", "seg_pred"}),
            (Names{"seg_test", "seg_train"}));
  EXPECT_TRUE(folders_of_splits({"bullet_train", "test_tube", "cat"}).empty());
  EXPECT_TRUE(folders_of_splits({"train_a", "train_b"}).empty());
}

Error mixed(const std::vector<std::string>& files) {
  try {
    refuse_mixed_splits("d/", files);
  } catch (const Exception& exception) {
    return exception.error();
  }
  return {};
}

TEST(Splits, of_files_are_rejected_with_a_pattern_for_each) {
  EXPECT_EQ(mixed({"d/train-0.tar", "d/train-1.tar", "d/test-0.tar", "d/extra.tar"}).hint,
            "open \"d/test-0.tar\", or \"d/train*.tar\"; all of them together: \"d/*.tar\"");
  EXPECT_EQ(mixed({"d/a_train.h5", "d/a_val1.h5", "d/a_val2.h5"}).hint,
            "open \"d/a_train.h5\", or \"d/a_val*.h5\"; all of them together: \"d/*.h5\"");
  EXPECT_EQ(mixed({"d/x_train.npy", "d/y_train.npy", "d/x_val.npy"}).hint.substr(0, 24),
            "open \"d/x_train.npy\", or");
  EXPECT_EQ(mixed({"d/data/train-0.pq", "d/data/train-1.pq", "d/data/test-0.pq"}).hint,
            "open \"d/data/test-0.pq\", or \"d/data/train*.pq\"; all of them together: "
            "\"d/data/*.pq\"");
  EXPECT_EQ(mixed({"d/train-0.tar", "d/train-1.tar", "d/b-0.tar"}).code, nullptr);
  EXPECT_EQ(mixed({"d/x-00000.tar"}).code, nullptr);
}

Error refusal(const std::vector<std::string>& splits, bool may_be_classes) {
  try {
    raise_splits("data/", splits, may_be_classes);
  } catch (const Exception& exception) {
    return exception.error();
  }
}

TEST(Splits, are_rejected_with_a_hint) {
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
