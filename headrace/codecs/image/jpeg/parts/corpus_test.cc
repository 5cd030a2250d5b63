// SPDX-License-Identifier: Apache-2.0
// Real and broken files from the wild: split, joined, and converted to the dense form. The files
// are not part of the project: HEADRACE_TEST_DATA is the folder that contains them; without it
// these tests are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "headrace/base/sweep_test_width.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"
#include "headrace/codecs/image/jpeg/parts/parts.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using jpeg_test::Bytes;

struct Folder {
  const char* name;
  bool all;  // every file that libjpeg-turbo reads without a warning is split
};

class JpegPartsCorpus : public testing::TestWithParam<Folder> {
 protected:
  void compare(const Bytes& file) {
    const auto expected = decoder_.coefficients(file);
    const Result<JpegParts> parts = split_jpeg(file);
    if (!parts) {
      const std::string& reason = parts.error().what;
      ++reasons_[reason];
      // Files that libjpeg-turbo reads without warnings are split, unless pixels depend on more
      // than coefficients.
      if (expected && GetParam().all) {
        EXPECT_EQ(reason, "missing scans");
      }
      return;
    }
    ++split_;
    ASSERT_TRUE(expected) << "libjpeg-turbo: " << expected.error().what;
    ASSERT_EQ(parts->planes.size(), expected->size());
    for (size_t c = 0; c < expected->size(); ++c) {
      ASSERT_EQ(parts->planes[c].coefficients, (*expected)[c].coefficients);
      ASSERT_EQ(parts->planes[c].quantization, (*expected)[c].quantization);
    }
    const Result<Bytes> again = join_jpeg(*parts);
    ASSERT_TRUE(again && *again == file);
    const Result<Bytes> dense = dense_from_jpeg(file);
    ASSERT_TRUE(dense);
    const Result<Bytes> original = jpeg_from_dense(*dense);
    ASSERT_TRUE(original && *original == file);
    bytes_ += file.size();
    dense_bytes_ += dense->size();
  }
  jpeg_test::Decoder decoder_;
  std::map<std::string, int> reasons_;
  int split_ = 0;
  size_t bytes_ = 0, dense_bytes_ = 0;
};

TEST_P(JpegPartsCorpus, EveryIntactFileIsRestoredAndHasLibjpegsCoefficients) {
  const char* root = std::getenv("HEADRACE_TEST_DATA");
  if (!root) GTEST_SKIP() << "HEADRACE_TEST_DATA is not set";
  const fs::path folder = fs::path(root) / GetParam().name;
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " does not exist";
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i < files.size(); i += size_t(kSweepStep)) {
    SCOPED_TRACE(files[i].string());
    std::ifstream in(files[i], std::ios::binary);
    compare(Bytes(std::istreambuf_iterator<char>(in), {}));
  }
  RecordProperty("split", split_);
  for (const auto& [reason, count] : reasons_) RecordProperty(reason, count);
  EXPECT_GT(split_, 0);
  if (kSweepStep == 1) {  // all files, not a few
    EXPECT_LE(dense_bytes_, bytes_ * 105 / 100);
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, JpegPartsCorpus,
                         testing::Values(Folder{"photos", true}, Folder{"photos_camera", true},
                                         Folder{"coco/images", true}, Folder{"cifar10", true},
                                         Folder{"jpeg_variants", false},
                                         Folder{"corrupt/jpeg", false}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::ranges::replace(name, '/', '_');
                           return name;
                         });

}  // namespace
}  // namespace headrace
