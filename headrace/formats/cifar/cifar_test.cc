// SPDX-License-Identifier: Apache-2.0
// Files written by hand from the description at cs.toronto.edu/~kriz/cifar.html.
#include <gtest/gtest.h>

#include "headrace/formats/arrays/array_test_files.h"
#include "headrace/formats/format.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

std::string record(const std::string& labels, char red, char green, char blue) {
  return labels + std::string(1024, red) + std::string(1024, green) + std::string(1024, blue);
}
const std::string kNames =
    "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";

class Cifar : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(Cifar, BatchesFollowEachOther) {
  folder_.write("c/batches.meta.txt", kNames);
  folder_.write("c/data_batch_1.bin", record("\7", 1, 2, 3) + record("\2", 4, 5, 6));
  folder_.write("c/data_batch_2.bin.gz", gzipped(record("\11", 7, 8, 9)));
  folder_.write("c/test_batch.bin", record("\3", 0, 0, 0));
  const Error error = error_of([&] { open_source(folder_ / "c"); });
  EXPECT_EQ(error.code->id, "HR0432");
  EXPECT_NE(error.hint.find("split=\"train\""), std::string::npos);
  const SourcePtr source = open_source(folder_ / "c", {{"split", std::string("train")}});
  EXPECT_EQ(source->size(), 3);
  EXPECT_EQ(source->schema()[0].shape, (Shape{3, 32, 32}));
  EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{7, 2, 9}));
  EXPECT_EQ(source->classes()[9], "truck");
  EXPECT_EQ(source->classes().size(), 10u);
  EXPECT_EQ(source->description(), "cifar " + (folder_ / "c") + " (3 records, 10 classes)");
  const Bytes pixels = bytes_of(*source, 2);
  EXPECT_EQ(pixels.size(), 3072u);
  EXPECT_EQ(pixels[0], 7);
  EXPECT_EQ(pixels[1023], 7);
  EXPECT_EQ(pixels[1024], 8);
  EXPECT_EQ(pixels[3071], 9);
  EXPECT_EQ(open_source(folder_ / "c", {{"split", std::string("test")}})->size(), 1);
  EXPECT_EQ(open_source(folder_ / "c/data_batch_1.bin")->size(), 2);
}

TEST_F(Cifar, Cifar100HasTwoLabels) {
  folder_.write("c/train.bin",
                record(std::string("\1\3", 2), 1, 2, 3) + record(std::string("\0\5", 2), 4, 5, 6));
  folder_.write("c/fine_label_names.txt", "a\nb\nc\nd\ne\nf\n");
  folder_.write("c/coarse_label_names.txt", "x\r\ny\r\n");
  const SourcePtr source = open_source(folder_ / "c");
  ASSERT_EQ(source->schema().size(), 3u);
  EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(source->integer_column("coarse_label"), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(source->classes(), (std::vector<std::string>{"a", "b", "c", "d", "e", "f"}));
  EXPECT_EQ(bytes_of(*source, 1)[0], 4);
}

TEST_F(Cifar, DamageIsNamed) {
  const auto refused = [&](const std::string& content) {
    return error_of([&] { open_source(folder_.write("data_batch_1.bin", content)); });
  };
  const Error cut = refused(record("\7", 1, 2, 3).substr(0, 3000));
  EXPECT_EQ(cut.code->id, "HR0424");
  EXPECT_EQ(cut.what, "3000 bytes are not a whole number of records of 3073");
  const Error label = refused(record("\7", 1, 2, 3) + record("\12", 1, 2, 3));
  EXPECT_EQ(label.what, "'label' is 10, but there are 10 classes");
  EXPECT_EQ(label.where.record, 1);
}

}  // namespace
}  // namespace headrace
