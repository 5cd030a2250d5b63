// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/record_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <numeric>
#include <thread>

#include "headrace/sources/columns/columns.h"
#include "headrace/sources/source_around.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// A hundred files of 10,000 bytes, which count how often they are read.
class RecordCacheTest : public testing::Test {
 protected:
  class Counting final : public SourceAround {
   public:
    using SourceAround::SourceAround;
    void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
              std::span<RecordData> out) const override {
      reads += static_cast<int64_t>(out.size());
      inner()->read(indices, wanted, out);
    }
    mutable std::atomic<int64_t> reads{0};
  };

  void SetUp() override {
    std::vector<std::string> paths;
    std::vector<std::string> texts;
    for (int i = 0; i < 100; ++i) {
      const std::string name = "f" + std::to_string(i);
      data.write(name, std::string(10'000, char('0' + i % 40)));
      paths.push_back(data.path() + "/" + name);
      texts.push_back("text " + std::to_string(i));
    }
    counting = std::make_shared<Counting>(
        records({{"data", PathColumn{paths}, FieldKind::kBytes}, {"text", TextColumn{texts}}}));
  }
  static void check_all(const Source& source) {
    std::vector<int64_t> indices(source.size());
    std::iota(indices.begin(), indices.end(), 0);
    std::vector<RecordData> out(indices.size());
    source.read(indices, {true, true}, out);
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_TRUE(out[i].result);
      EXPECT_EQ(out[i].index, int64_t(i));
      const auto& bytes = out[i].fields[0].bytes;
      EXPECT_EQ(std::string(bytes.begin(), bytes.end()), std::string(10'000, char('0' + i % 40)));
      const auto& text = out[i].fields[1].bytes;
      EXPECT_EQ(std::string(text.begin(), text.end()), "text " + std::to_string(i));
    }
  }
  TemporaryFolder data;
  std::shared_ptr<Counting> counting;  // shared: with the sources over it
};

TEST_F(RecordCacheTest, records_that_fit_are_read_once) {
  const WithRecordCache cached = with_record_cache(counting, {true, true}, 8 * kMiB);
  check_all(*cached.source);
  EXPECT_EQ(counting->reads, 100);
  check_all(*cached.source);
  check_all(*cached.source);
  EXPECT_EQ(counting->reads, 100);
  EXPECT_EQ(cached.cache->counts().hits, 200);
  EXPECT_EQ(cached.source->fingerprint(), counting->fingerprint());
}

TEST_F(RecordCacheTest, records_that_do_not_fit_are_reread_and_the_rest_stays) {
  // Each takes 10,432 bytes with its table and padding; half a megabyte holds some fifty.
  const WithRecordCache cached = with_record_cache(counting, {true, true}, kMiB / 2);
  check_all(*cached.source);
  const int64_t kept = cached.cache->counts().records;
  EXPECT_GT(kept, 45);
  EXPECT_LT(kept, 52);
  EXPECT_LE(cached.cache->counts().bytes, kMiB / 2);
  for (int64_t epoch = 1; epoch <= 3; ++epoch) {
    check_all(*cached.source);
    EXPECT_EQ(counting->reads, 100 + epoch * (100 - kept));
    EXPECT_EQ(cached.cache->counts().hits, epoch * kept);
  }
}

TEST_F(RecordCacheTest, loaders_of_one_source_share_it_and_views_read_through_it) {
  const WithRecordCache one = with_record_cache(counting, {true, true}, 4 * kMiB);
  const SourcePtr view = subset(counting, {5, 7});
  const WithRecordCache two = with_record_cache(view, {true, true}, 4 * kMiB);
  EXPECT_EQ(one.cache, two.cache);
  check_all(*one.source);
  std::vector<RecordData> out(1);
  const int64_t second = 1;
  two.source->read({&second, 1}, {true, true}, out);
  EXPECT_EQ(out[0].index, 1);
  EXPECT_EQ(out[0].fields[0].bytes[0], '7');
  EXPECT_EQ(counting->reads, 100);
  EXPECT_NE(with_record_cache(counting, {true, false}, kMiB).cache, one.cache);
}

TEST_F(RecordCacheTest, a_bad_record_is_not_kept) {
  std::filesystem::remove(data.path() + "/f3");
  const WithRecordCache cached = with_record_cache(counting, {true, true}, 8 * kMiB);
  for (int again = 0; again < 2; ++again) {
    std::vector<RecordData> out(1);
    const int64_t third = 3;
    cached.source->read({&third, 1}, {true, true}, out);
    EXPECT_FALSE(out[0].result);
  }
  EXPECT_EQ(counting->reads, 2);
}

TEST_F(RecordCacheTest, threads_may_read_it_at_once) {
  const WithRecordCache cached = with_record_cache(counting, {true, true}, kMiB / 2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int epoch = 0; epoch < 5; ++epoch) check_all(*cached.source);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cached.cache->counts().bytes, kMiB / 2);
}

TEST_F(RecordCacheTest, memory_needs_no_cache) {
  static const int64_t values[] = {1, 2};
  const SourcePtr source = records({{"x", ArrayColumn{values, DType::kInt64, 2, {}, {}}}});
  EXPECT_EQ(with_record_cache(source, {true}, kMiB).source, source);
}

}  // namespace
}  // namespace headrace
