// SPDX-License-Identifier: Apache-2.0
// Real and broken files from the wild, compared with libjpeg-turbo. The files are not part of the
// project: HEADRACE_TEST_DATA is the folder that contains photos/, jpeg_variants/, photos_camera/
// and corrupt/jpeg/; without it these tests are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "headrace/codecs/image/jpeg/jpeg_test_images.h"

namespace headrace::jpeg_test {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_below(const fs::path& root) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Bytes contents_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

struct Tally {
  int equal = 0, refused = 0, refused_by_rule = 0;
};

class JpegCorpus : public testing::TestWithParam<const char*> {
 protected:
  // The whole image, some windows, and the strict verdict of one file.
  void compare(const Bytes& bytes) {
    const bool gray = decoder_.header(bytes) && decoder_.header(bytes)->channels == 1;
    const Pixels expected = oracle(bytes, gray ? JCS_GRAYSCALE : JCS_RGB);
    if (expected.too_large) return;
    Pixels got = decoder_.whole(bytes, ColorMode::kStored);
    // Scans beyond the limit, and the lossless files that libjpeg-turbo 3 would read.
    if (expected.ok && (decoder_.last_code() == "HR0306" || decoder_.last_code() == "HR0303")) {
      ++tally_.refused_by_rule;
      return;
    }
    ASSERT_EQ(got.ok, expected.ok) << got.error << " / " << expected.error;
    if (!expected.ok) {
      ++tally_.refused;
      return;
    }
    invert_ink(got);
    ASSERT_EQ(got.data, expected.data);
    EXPECT_EQ(got.warnings, expected.warnings);
    ++tally_.equal;
    for (int i = 0; i < 4; ++i) {
      const Window w = draw_.window(expected.width, expected.height);
      Pixels part = decoder_.window(bytes, w, ColorMode::kStored, expected.channels);
      invert_ink(part);
      ASSERT_EQ(part.data, expected.slice(w).data)
          << w.width << "x" << w.height << " at " << w.x << "," << w.y;
    }
    if (expected.warnings > 0) {
      EXPECT_FALSE(decoder_.whole(bytes, ColorMode::kStored, true).ok);
      EXPECT_FALSE(decoder_.coefficients(bytes));
    }
  }
  Tally tally_;

 private:
  static void invert_ink(Pixels& pixels) {
    if (pixels.channels != 4) return;
    for (uint8_t& value : pixels.data) value = uint8_t(255 - value);
  }
  Decoder decoder_;  // one for all files: state must not leak from one to the next
  Draw draw_{7};
};

TEST_P(JpegCorpus, EveryFileGivesLibjpegTurbosPixels) {
  const char* root = std::getenv("HEADRACE_TEST_DATA");
  if (!root) GTEST_SKIP() << "HEADRACE_TEST_DATA is not set";
  const fs::path folder = fs::path(root) / GetParam();
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " does not exist";
  for (const fs::path& path : files_below(folder)) {
    SCOPED_TRACE(path.string());
    compare(contents_of(path));
  }
  RecordProperty("equal", tally_.equal);
  RecordProperty("refused", tally_.refused);
  RecordProperty("refused_by_rule", tally_.refused_by_rule);
  EXPECT_GT(tally_.equal, 0);
  EXPECT_LT(tally_.refused_by_rule, tally_.equal);
}

INSTANTIATE_TEST_SUITE_P(Folders, JpegCorpus,
                         testing::Values("photos", "jpeg_variants", "photos_camera",
                                         "corrupt/jpeg"));

}  // namespace
}  // namespace headrace::jpeg_test
