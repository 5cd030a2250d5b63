// SPDX-License-Identifier: Apache-2.0
// Expected bytes are written by hand from the description at yann.lecun.com/exdb/mnist.
#include <gtest/gtest.h>

#include <filesystem>

#include "headrace/formats/arrays/array_test_files.h"
#include "headrace/formats/format.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

std::string idx(char type, const std::vector<int>& sizes, const std::string& data) {
  std::string out{0, 0, type, static_cast<char>(sizes.size())};
  for (const int size : sizes) {
    for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(size >> shift);
  }
  return out + data;
}

const std::string kImages = idx(8, {3, 2, 4}, counting(24));
const std::string kThree = idx(8, {3}, std::string("\5\0\4", 3));

class Idx : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(Idx, LabelsAreFoundNextToTheImages) {
  struct Names {
    const char *images, *labels;
    bool images_packed, labels_packed;
  };
  for (const Names& names :
       {Names{"train-images-idx3-ubyte", "train-labels-idx1-ubyte", false, false},
        Names{"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", true, true},
        Names{"t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte", true, false},
        Names{"train-images.idx3-ubyte", "train-labels.idx1-ubyte", false, false},
        Names{"emnist-letters-train-images-idx3-ubyte", "emnist-letters-train-labels-idx1-ubyte.gz",
              false, true}}) {
    const TemporaryFolder folder;
    folder.write(names.labels, names.labels_packed ? gzipped(kThree) : kThree);
    const SourcePtr source =
        open_source(folder.write(names.images, names.images_packed ? gzipped(kImages) : kImages));
    ASSERT_EQ(source->schema().size(), 2u) << names.images;
    EXPECT_EQ(source->schema()[0].kind, FieldKind::kImage);
    EXPECT_EQ(source->schema()[0].shape, (Shape{1, 2, 4}));
    EXPECT_EQ(bytes_of(*source, 1), (Bytes{8, 9, 10, 11, 12, 13, 14, 15}));
    EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{5, 0, 4}));
  }
}

TEST_F(Idx, EveryTypeIsReadInNativeByteOrder) {
  const auto record = [&](char type, const std::string& data) {
    return bytes_of(*open_source(folder_.write("x.idx", idx(type, {1, 2}, data))), 0);
  };
  EXPECT_EQ(record(0x08, counting(2)), (Bytes{0, 1}));
  EXPECT_EQ(record(0x09, counting(2)), (Bytes{0, 1}));
  EXPECT_EQ(record(0x0B, counting(4)), (Bytes{1, 0, 3, 2}));
  EXPECT_EQ(record(0x0C, counting(8)), (Bytes{3, 2, 1, 0, 7, 6, 5, 4}));
  EXPECT_EQ(record(0x0D, counting(8)), (Bytes{3, 2, 1, 0, 7, 6, 5, 4}));
  EXPECT_EQ(record(0x0E, counting(16)).size(), 16u);
}

TEST_F(Idx, AFolderOfSeveralSetsIsAnErrorThatNamesThem) {
  folder_.write("d/train-images-idx3-ubyte.gz", gzipped(kImages));
  folder_.write("d/train-images-idx3-ubyte", kImages);
  folder_.write("d/train-labels-idx1-ubyte", kThree);
  EXPECT_EQ(open_source(folder_ / "d")->size(), 3);
  folder_.write("d/t10k-images-idx3-ubyte", idx(8, {1, 2, 4}, counting(8)));
  const Error error = error_of([&] { open_source(folder_ / "d"); });
  EXPECT_EQ(error.code->id, "HR0432");
  EXPECT_EQ(error.what,
            "it contains the images of 't10k-images-idx3-ubyte' and 'train-images-idx3-ubyte'");
  EXPECT_EQ(open_source(folder_ / "d", {{"split", std::string("train")}})->size(), 3);
  EXPECT_EQ(open_source(folder_ / "d", {{"split", std::string("test")}})->size(), 1);
}

TEST_F(Idx, DamageIsNamed) {
  const auto refused = [&](const std::string& content) {
    return error_of([&] {
      open_source(folder_.write("x-idx3-ubyte", content), {{"format", std::string("idx")}});
    });
  };
  const Error cut = refused(kImages.substr(0, 39));
  EXPECT_EQ(cut.code->id, "HR0424");
  EXPECT_EQ(cut.what,
            "its header declares 3 records of (2, 4), which does not match the 23 bytes after it");
  EXPECT_EQ(refused(kImages + "x").code->id, "HR0424");
  EXPECT_EQ(refused(idx(8, {-1, -1, -1, -1}, "")).code->id, "HR0424");
  EXPECT_EQ(refused(idx(7, {1, 1}, "x")).code->id, "HR0424");
  EXPECT_EQ(refused("").code->id, "HR0424");
  EXPECT_EQ(refused(gzipped(kImages).substr(0, 30)).code->id, "HR0422");
  const Error lengths = error_of([&] {
    folder_.write("y-labels-idx1-ubyte", idx(8, {2}, "ab"));
    open_source(folder_.write("y-images-idx3-ubyte", kImages));
  });
  EXPECT_EQ(lengths.code->id, "HR0420");
}

TEST_F(Idx, AnyChangedBitOrLengthIsHarmless) {
  for (const std::string& sound : {kImages, gzipped(kImages)}) {
    for_each_damage(sound, 64, [&](const std::string& content) {
      use_damaged(folder_.write("x-idx3-ubyte", content), "idx");
    });
  }
}

}  // namespace
}  // namespace headrace
