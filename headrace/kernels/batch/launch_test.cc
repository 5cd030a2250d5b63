// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/launch.h"

#include <algorithm>
#include <set>

#include "headrace/kernels/batch/batch_test_devices.h"
#include "headrace/kernels/batch/gather_rows.h"

namespace headrace {
namespace {

TEST(Lane, EveryElementBelongsToTheLaneOfItsIndexModuloTheLanes) {
  for (const int count : {1, 2, 5, 32}) {
    for (int begin = 0; begin < 70; ++begin) {
      std::multiset<int32_t> taken;
      for (int number = 0; number < count; ++number) {
        for (int32_t x = Lane{number, count}.first_from(begin); x < begin + 45; x += count) {
          EXPECT_EQ(x % count, number);
          taken.insert(x);
        }
      }
      std::multiset<int32_t> all;
      for (int32_t x = begin; x < begin + 45; ++x) all.insert(x);
      ASSERT_EQ(taken, all) << count << " lanes from " << begin;
    }
  }
}

TEST(Launch, FailsWithoutAGpu) {
  if (cuda_devices().count > 0) GTEST_SKIP() << "there is a GPU";
  const char row[16] = {};
  char batch[16] = {};
  const GatherRows kernel(row, 16, RowChoice::slice(0), batch, 1);
  const Result<void> queued = run(kernel, Target::stream(nullptr));
  ASSERT_FALSE(queued);
  const std::string message = queued.error().message();
  if (queued.error().code->id == "HR0861") {
    EXPECT_EQ(
        message,
        "HR0861 built without CUDA: a batch kernel is needed on a GPU, but this build has none\n"
        "  help: build with nvcc on the PATH, or use device=\"cpu\"");
  } else {  // CUDA's own name for what is missing: a driver, or a device
    EXPECT_TRUE(message.starts_with("HR0860 CUDA kernel launch failed: cudaError")) << message;
  }
}

TEST(Launch, CudasAnswerBecomesAnError) {
  EXPECT_TRUE(result_of({}));
  const Result<void> refused =
      result_of({.cuda_name = "cudaErrorLaunchFailure", .cuda_text = "launch failure"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "HR0860 CUDA kernel launch failed: cudaErrorLaunchFailure: launch failure");
  const Result<void> without = result_of({.has_kernels = false});
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code->id, "HR0861");
}

TEST(Launch, GridsAreBoundedInMultiprocessors) {
  EXPECT_EQ(max_blocks(132, 256), 132 * 8);
  EXPECT_EQ(max_blocks(132, 64), 132 * 32);
  bound_grids(128);
  EXPECT_EQ(max_blocks(132, 64), 132 * 2);
  EXPECT_EQ(max_blocks(132, 256), 132);
  EXPECT_EQ(max_blocks(0, 256), 1);
  bound_grids(kThreadsOfMultiprocessor);
}

}  // namespace
}  // namespace headrace
