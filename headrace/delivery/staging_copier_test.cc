// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/staging_copier.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/device/simulated/simulated_device.h"

namespace headrace {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes random_bytes(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  Bytes out(count);
  for (size_t at = 0; at < count; at += 97) out[at] = uint8_t(random());
  return out;
}

// The source may be overwritten as soon as copy() returns, however late the device is.
TEST(StagingCopier, CopiesAreCorrectForAnyNumberOfThreads) {
  constexpr size_t kPiece = StagingCopier::kPieceBytes;
  uint32_t seed = 0;
  for (const int helpers : {0, 3}) {
    StagingCopier copier(helpers);
    for (const size_t bytes : {size_t{0}, size_t{300'000}, kPiece + 1, 4 * kPiece + 70'001}) {
      SimulatedDevice device(++seed);
      const StreamPtr stream = device.make_stream();
      const std::shared_ptr<void> memory = device.allocate(std::max<size_t>(bytes, 1));
      const Bytes expected = random_bytes(seed, bytes);
      Bytes source = expected, staged(bytes), out(bytes);
      copier.copy(memory.get(), staged.data(), source.data(), bytes, *stream);
      std::fill(source.begin(), source.end(), uint8_t{0xEE});
      stream->copy(out.data(), memory.get(), bytes);
      stream->synchronize();
      EXPECT_TRUE(out == expected) << helpers << " helpers, " << bytes << " bytes";
    }
  }
}

TEST(StagingCopier, LargeTensorsAreSentInPieces) {
  SimulatedDevice device(1, {.bytes_per_second = 1e9});
  const StreamPtr stream = device.make_stream();
  const size_t bytes = 3 * StagingCopier::kPieceBytes;
  const std::shared_ptr<void> memory = device.allocate(bytes);
  const Bytes source(bytes);
  Bytes staged(bytes);
  StagingCopier copier(0);
  copier.copy(memory.get(), staged.data(), source.data(), bytes, *stream);
  stream->synchronize();
  EXPECT_EQ(device.timeline().size(), 3u);
}

TEST(StagingCopier, AfterADeviceFailureTheMemoryIsNotReused) {
  const size_t bytes = 4 * StagingCopier::kPieceBytes;
  StagingCopier copier(3);
  for (int64_t n = 1; n <= 2; ++n) {
    SimulatedDevice device(7);
    const StreamPtr stream = device.make_stream();
    const std::shared_ptr<void> memory = device.allocate(bytes);
    auto source = std::make_unique<Bytes>(bytes), staged = std::make_unique<Bytes>(bytes);
    device.fail_at(n);
    EXPECT_THROW(
        {
          copier.copy(memory.get(), staged->data(), source->data(), bytes, *stream);
          stream->synchronize();
        },
        Exception);
    source = nullptr;  // sanitizers see a thread that still reads or writes
    staged = nullptr;
  }
}

}  // namespace
}  // namespace headrace
