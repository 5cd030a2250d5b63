// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/gather_rows.h"

#include <set>

#include "headrace/kernels/batch/batch_test_devices.h"

namespace headrace {
namespace {

class GatherRowsOn : public OnTestDevice {
 protected:
  // Compares with NumPy's rows[indices], byte by byte.
  static std::vector<uint8_t> expected(const std::vector<uint8_t>& rows, size_t row_bytes,
                                       const std::vector<int64_t>& indices) {
    std::vector<uint8_t> batch;
    for (const int64_t index : indices) {
      for (size_t byte = 0; byte < row_bytes; ++byte) {
        batch.push_back(rows.at(static_cast<size_t>(index) * row_bytes + byte));
      }
    }
    return batch;
  }
};

TEST_P(GatherRowsOn, GathersRowsOfAnySizeAndAlignment) {
  TestDraws draws(1);
  const int sizes[] = {1, 2, 3, 4, 8, 12, 16, 28 * 28, 3072, 4096, 4097, 10000, 12288};
  for (int round = 0; round < 60; ++round) {
    const int row_bytes = round < 13 ? sizes[round] : draws.between(1, 6000);
    const int count = draws.between(1, 40), taken = draws.between(1, 50);
    const size_t skew = round % 3 ? 0 : draws.below(16);
    const auto rows = draws.values<uint8_t>(size_t(row_bytes) * count);
    std::vector<int64_t> indices(taken);
    for (int64_t& index : indices) index = draws.below(count);

    uint8_t* const batch = room<uint8_t>(size_t(row_bytes) * taken, skew);
    run_here(
        GatherRows(put(rows, skew), row_bytes, RowChoice::indices(put(indices)), batch, taken));
    ASSERT_EQ(get(batch, size_t(row_bytes) * taken), expected(rows, row_bytes, indices))
        << row_bytes << " bytes, skew " << skew;
  }
}

TEST_P(GatherRowsOn, AShuffledEpochGivesEveryRowOnceInPermutationOrder) {
  TestDraws draws(2);
  for (const int count : {1, 2, 3, 17, 64, 100, 1000, 1025}) {
    const auto rows = draws.values<uint32_t>(count);
    const Permutation order(count, 99 + count);
    std::vector<uint32_t> epoch;
    std::vector<uint32_t> expected_epoch;
    for (int64_t first = 0; first < count; first += 37) {
      const int64_t taken = std::min<int64_t>(37, count - first);
      uint32_t* const batch = room<uint32_t>(taken);
      run_here(GatherRows(put(rows), 4, RowChoice::shuffled(order, first), batch, taken));
      const auto got = get(batch, taken);
      epoch.insert(epoch.end(), got.begin(), got.end());
      for (int64_t i = 0; i < taken; ++i) expected_epoch.push_back(rows[order(first + i)]);
    }
    ASSERT_EQ(epoch, expected_epoch);
    ASSERT_EQ(std::multiset<uint32_t>(epoch.begin(), epoch.end()),
              std::multiset<uint32_t>(rows.begin(), rows.end()));
  }
}

TEST_P(GatherRowsOn, ASliceIsACopyOfConsecutiveRows) {
  TestDraws draws(3);
  for (int round = 0; round < 30; ++round) {
    const int row_bytes = draws.between(1, 700), count = draws.between(1, 60);
    const int first = draws.below(count), taken = draws.between(0, count - first);
    const auto rows = draws.values<uint8_t>(size_t(row_bytes) * count);
    uint8_t* const copied = room<uint8_t>(size_t(row_bytes) * taken);
    uint8_t* const chosen = room<uint8_t>(size_t(row_bytes) * taken);
    const uint8_t* const there = put(rows);
    run_here(GatherRows::slice(there, row_bytes, first, copied, taken));
    run_here(GatherRows(there, row_bytes, RowChoice::slice(first), chosen, taken));
    const std::vector<uint8_t> part(rows.begin() + first * row_bytes,
                                    rows.begin() + (first + taken) * row_bytes);
    ASSERT_EQ(get(copied, part.size()), part);
    ASSERT_EQ(get(chosen, part.size()), part);
  }
}

TEST_P(GatherRowsOn, NoRowsOrEmptyRowsMeanNoWork) {
  const auto rows = put(std::vector<uint8_t>(16));
  EXPECT_EQ(GatherRows(rows, 16, RowChoice::slice(0), rows, 0).items(), 0);
  EXPECT_EQ(GatherRows(rows, 0, RowChoice::slice(0), rows, 5).items(), 0);
  run_here(GatherRows(rows, 16, RowChoice::slice(0), nullptr, 0));
  run_here(GatherRows(nullptr, 0, RowChoice::slice(0), nullptr, 9));
}

TEST(GatherRows, CountsItemsAndOffsetsBeyond4GiB) {
  // Only checks how the work is split: 40 million rows of 3072 bytes are 123 GB.
  EXPECT_EQ(GatherRows(nullptr, 3072, RowChoice::slice(0), nullptr, 40'000'000).items(),
            40'000'000);
  EXPECT_EQ(GatherRows::slice(nullptr, 3072, 0, nullptr, 40'000'000).items(), 30'000'000);
}

INSTANTIATE_TEST_SUITE_P(Devices, GatherRowsOn, testing::ValuesIn(test_devices()),
                         test_device_name);

}  // namespace
}  // namespace headrace
