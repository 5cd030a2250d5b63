// SPDX-License-Identifier: Apache-2.0
// Pictures give libjpeg-turbo's coefficients, at every SIMD level: generated ones, and every
// baseline file of HEADRACE_TEST_DATA.
#include <gtest/gtest.h>

#include <random>

#include "headrace/base/sweep_test_width.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/huffman_test_images.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace::huffman_test {
namespace {

class HuffmanImages : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

std::vector<Picture> pictures_below(const char* folder, size_t most) {
  std::vector<Picture> pictures;
  for (Bytes& file : files_below(folder)) {
    if (auto picture = read_picture(std::move(file))) pictures.push_back(std::move(*picture));
    if (pictures.size() == most) break;
  }
  return pictures;
}

// Decodes whole pictures, `lanes` in parallel, in runs of one row.
void expect_equal(const std::vector<Picture>& pictures, int lanes) {
  struct Job {
    Decoding decoding;
    std::vector<int16_t> out;
  };
  std::vector<Job> jobs(lanes);
  std::vector<Job*> running;
  size_t next = 0, done = 0;
  const auto start = [&](Job& job) {
    if (next == pictures.size()) return false;
    const Picture& picture = pictures[next++];
    job.out.clear();
    EXPECT_TRUE(job.decoding.open(picture));
    return job.decoding.begin(picture.mcus_wide);
  };
  for (Job& job : jobs) {
    if (start(job)) running.push_back(&job);
  }
  while (!running.empty()) {
    std::vector<HuffmanLane*> walking;
    for (Job* job : running) walking.push_back(&job->decoding.lane());
    const int stopped = walk(walking);
    Job& job = *running[stopped];
    Decoding& decoding = job.decoding;
    ASSERT_EQ(decoding.lane().state(), HuffmanLane::State::kDone);
    decoding.collect(0, decoding.run(), job.out);
    ASSERT_EQ(decoding.lane().state(), HuffmanLane::State::kDone);
    if (decoding.begin(decoding.picture().mcus_wide)) continue;
    ASSERT_EQ(job.out.size(), decoding.picture().coefficients.size());
    ASSERT_TRUE(job.out == decoding.picture().coefficients) << "picture " << done;
    ++done;
    if (!start(job)) running.erase(running.begin() + stopped);
  }
  EXPECT_EQ(done, pictures.size());
}

TEST_P(HuffmanImages, OfAllSamplingsAndQualitiesHaveLibjpegsCoefficients) {
  const std::vector<std::vector<Factors>> samplings = {{{1, 1}},
                                                       {{1, 1}, {1, 1}, {1, 1}},
                                                       {{2, 1}, {1, 1}, {1, 1}},
                                                       {{1, 2}, {1, 1}, {1, 1}},
                                                       {{2, 2}, {1, 1}, {1, 1}},
                                                       {{4, 1}, {1, 1}, {1, 1}},
                                                       {{2, 2}, {2, 1}, {1, 2}},
                                                       {{1, 1}, {2, 2}, {1, 1}},
                                                       {{2, 2}, {1, 1}, {1, 1}, {2, 2}}};
  std::vector<Picture> pictures;
  std::mt19937 engine(1);
  const auto below = [&](int bound) { return static_cast<int>(engine() % unsigned(bound)); };
  for (const std::vector<Factors>& sampling : samplings) {
    for (int quality = 1; quality <= 100; quality += quality < 90 ? 7 : 1) {
      const FileSpec spec{.width = 1 + below(150),
                          .height = 1 + below(150),
                          .sampling = sampling,
                          .restart_interval = below(3) == 0 ? 1 + below(20) : 0,
                          .quality = quality,
                          .optimize = below(2) == 0};
      auto picture = read_picture(noisy_file(spec));
      ASSERT_TRUE(picture.has_value());
      pictures.push_back(std::move(*picture));
    }
  }
  for (int lanes = 1; lanes <= kMaxLanes; ++lanes) expect_equal(pictures, lanes);
}

TEST_P(HuffmanImages, PhotosHaveLibjpegsCoefficients) {
  const std::vector<Picture> pictures = pictures_below("photos", size_t(200 / kSweepStep));
  if (pictures.empty()) GTEST_SKIP() << "HEADRACE_TEST_DATA is not set";
  for (int lanes = 1; lanes <= kMaxLanes; ++lanes) expect_equal(pictures, lanes);
}

TEST_P(HuffmanImages, UnusualFilesHaveLibjpegsCoefficients) {
  const std::vector<Picture> pictures = pictures_below("jpeg_variants", 10000);
  if (pictures.empty()) GTEST_SKIP() << "HEADRACE_TEST_DATA is not set";
  expect_equal(pictures, 4);
}

INSTANTIATE_TEST_SUITE_P(Levels, HuffmanImages, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace::huffman_test
