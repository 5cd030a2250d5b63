// SPDX-License-Identifier: Apache-2.0
// Sets and batches of more than 2^32 bytes, in sparse memory: only pages that are touched are
// allocated.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <vector>

#include "headrace/kernels/batch/float_batch.h"
#include "headrace/kernels/batch/gather_rows.h"
#include "headrace/kernels/batch/launch.h"
#include "headrace/kernels/batch/picture_batch.h"

namespace headrace {
namespace {

constexpr int64_t kFar = (int64_t{1} << 32) + 4096;  // in bytes or in elements

class FarRows : public testing::Test {
 protected:
  static constexpr size_t kBytes = size_t{kFar} * 4 + 4096;

  void SetUp() override {
    memory_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) GTEST_SKIP() << "no 16 GiB of addresses here";
  }
  void TearDown() override {
    if (memory_ != MAP_FAILED) munmap(memory_, kBytes);
  }
  template <class T>
  T* memory() {
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_ = MAP_FAILED;
};

TEST_F(FarRows, AreGathered) {
  memory<uint8_t>()[kFar] = 7;
  const int64_t index = kFar;
  uint8_t row = 0;
  ASSERT_TRUE(
      run(GatherRows(memory<uint8_t>(), 1, RowChoice::indices(&index), &row, 1), Target::host()));
  EXPECT_EQ(row, 7);
}

TEST_F(FarRows, MayBeTheDestinationOfAGather) {
  // 2^20 + 1 rows of 4096 bytes, of which the last is copied.
  const std::vector<uint8_t> row(4096, 9);
  const std::vector<int64_t> indices(kFar / 4096, 0);
  const GatherRows kernel(row.data(), 4096, RowChoice::indices(indices.data()), memory<uint8_t>(),
                          kFar / 4096);
  ASSERT_EQ(kernel.items(), (1 << 20) + 1);
  run_items(kernel, kernel.items() - 1, kernel.items());
  EXPECT_EQ(memory<uint8_t>()[kFar - 1], 9);
}

TEST_F(FarRows, BecomeImagesOfABatch) {
  memory<float>()[kFar] = 0.5f;
  const int64_t index = kFar;
  float out[2] = {};
  PictureBatch batch{.pictures = memory<float>(),
                     .from = PictureStrides::channels_first(1, 1, 1),
                     .height = 1,
                     .width = 1,
                     .choice = RowChoice::indices(&index),
                     .count = 1,
                     .batch = out,
                     .to = {.picture = 1, .row = 1, .column = 1, .channel = 1},
                     .to_height = 1,
                     .to_width = 1};
  batch.map.bytes = 4;
  ASSERT_TRUE(run(batch, Target::host()));
  EXPECT_EQ(out[0], 0.5f);
}

TEST_F(FarRows, AreNormalizedInPlace) {
  // The last of 2^32 pictures of one pixel.
  memory<float>()[kFar - 1] = 3.0f;
  const float mean = 1.0f, std = 0.5f;
  const auto strides = PictureStrides::channels_first(1, 1, 1);
  const FloatBatch kernel{.pictures = memory<float>(),
                          .from = strides,
                          .batch = memory<float>(),
                          .to = strides,
                          .count = kFar,
                          .height = 1,
                          .width = 1,
                          .map = FloatMap(DType::kFloat32).normalize({&mean, 1}, {&std, 1})};
  ASSERT_EQ(kernel.items(), kFar);
  run_items(kernel, kFar - 1, kFar);
  EXPECT_EQ(memory<float>()[kFar - 1], 4.0f);
}

}  // namespace
}  // namespace headrace
