// SPDX-License-Identifier: Apache-2.0
// Complete runs over real JPEG files, with and without a Python step, with several concurrent
// loaders; also run under ThreadSanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/formats/format.h"
#include "headrace/loader.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace loader_pictures_test {

using jpeg_test::FileSpec;
using jpeg_test::Pixels;
using Specs = std::vector<Spec>;

const ErrorCode kPlanted{"HR0799", ErrorKind::kData, "planted damage", "Only in tests."};
const ErrorCode kPlantedOutage{"HR0798", ErrorKind::kStorage, "planted outage", "Only in tests."};

// Turns pictures into their negative; fails for those whose first sample is in `refused`.
class Negative final : public PythonFunction {
 public:
  explicit Negative(std::set<int> refused = {}) : refused_(std::move(refused)) {}
  std::string name() const override { return "negative"; }
  std::vector<std::string> inputs() const override { return {"image"}; }
  void call(std::span<PythonCall* const> calls) override {
    {
      std::lock_guard lock(mutex_);
      threads_.insert(std::this_thread::get_id());
    }
    for (PythonCall* call : calls) {
      const TensorView& in = call->inputs[0].view;
      const auto* from = static_cast<const uint8_t*>(in.data);
      if (refused_.contains(from[0])) {
        call->result = Error{.code = &kPlanted, .what = "refused"};
        continue;
      }
      PythonValue out;
      out.owned.resize(in.dense_bytes());
      for (size_t i = 0; i < in.dense_bytes(); ++i) out.owned.data()[i] = 255 - from[i];
      out.view = {out.owned.data(), in.dtype, in.shape, {}};
      call->outputs.push_back(std::move(out));
    }
  }
  std::set<std::thread::id> threads() {
    std::lock_guard lock(mutex_);
    return threads_;
  }

 private:
  const std::set<int> refused_;
  std::mutex mutex_;
  std::set<std::thread::id> threads_;
};

Spec step(std::shared_ptr<PythonFunction> function) { return {function->name(), {}, {}, function}; }
Spec resize(int64_t size) {
  return {"Resize", {{"size", std::vector<int64_t>{size, size}}}, {}, {}};
}
Spec crop(int64_t size) { return {"RandomResizedCrop", {{"size", size}}, {}, {}}; }
Spec flip() { return {"RandomHorizontalFlip", {}, {}, {}}; }

FileSpec spec_of(int number, int scale) {
  FileSpec spec{.width = (40 + 7 * (number % 5)) * scale,
                .height = (30 + 5 * (number % 7)) * scale};
  if (number % 3 == 1) spec.sampling = {{1, 1}, {1, 1}, {1, 1}};
  if (number % 3 == 2) spec.sampling = {{1, 1}};
  spec.progressive = number % 4 == 3;
  spec.restart_interval = number % 5 == 0 ? 2 : 0;
  return spec;
}

std::string file_name(int number) {
  return "class" + std::to_string(number % 2) + "/" + std::to_string(100 + number) + ".jpg";
}

// A folder of JPEG files of every kind; those in `bad` are truncated in their header.
class Photos {
 public:
  explicit Photos(int count, const std::set<int>& bad = {}, int scale = 1) {
    setenv("HEADRACE_CACHE", (folder_ / "cache").c_str(), 1);
    for (int i = 0; i < count; ++i) {
      jpeg_test::Bytes bytes = jpeg_test::encode(spec_of(i, scale));
      if (bad.contains(i)) bytes.resize(30);
      folder_.write("data/" + file_name(i), {reinterpret_cast<char*>(bytes.data()), bytes.size()});
    }
    source_ = open_source(folder_ / "data");
  }
  SourcePtr source() const { return source_; }

 private:
  TemporaryFolder folder_;
  SourcePtr source_;
};

LoaderOptions options(int threads, int64_t batch = 8) {
  LoaderOptions out;
  out.batch_size = batch;
  out.threads = threads;
  out.shuffle = true;
  out.memory_limit = size_t{256} << 20;
  return out;
}

uint64_t hash_of(const Batch& batch) {
  uint64_t hash = static_cast<uint64_t>(batch.index);
  for (const BatchField& field : batch.fields) {
    const auto* bytes = static_cast<const uint8_t*>(field.view.data);
    for (size_t i = 0; i < field.view.dense_bytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001B3;
  }
  return hash;
}

std::vector<uint64_t> image_hashes_of(Loader& loader) {
  std::vector<uint64_t> out;
  while (auto batch = loader.next()) out.push_back(hash_of(*batch));
  const LoaderStats stats = loader.stats();
  EXPECT_LE(stats.memory_peak, stats.memory_limit);
  return out;
}

std::vector<uint64_t> image_hashes_of(const SourcePtr& source, const Specs& transforms,
                                      const LoaderOptions& options) {
  Loader loader(source, {transforms, {}, {}}, options);
  return image_hashes_of(loader);
}

TEST(Pictures, EqualThePlainDecodeOfTheirFiles) {
  const Photos photos(24);
  LoaderOptions o = options(2);
  o.plan.ragged = Ragged::kList;
  o.plan.fields = {"image", "key"};
  Loader loader(photos.source(), {}, o);
  int seen = 0;
  while (auto batch = loader.next()) {
    for (int64_t row = 0; row < batch->size; ++row, ++seen) {
      const std::string& key = (*batch)["key"].strings[row];
      std::ifstream file(key, std::ios::binary);
      const jpeg_test::Bytes bytes{std::istreambuf_iterator<char>(file), {}};
      const Pixels expected = jpeg_test::oracle(bytes);
      const TensorView& view = (*batch)["image"].items[row];
      ASSERT_EQ(view.shape, (Shape{3, expected.height, expected.width})) << key;
      const auto* got = static_cast<const uint8_t*>(view.data);
      for (int c = 0; c < 3; ++c) {
        for (int i = 0; i < expected.height * expected.width; ++i) {
          ASSERT_EQ(*got++, expected.data[3 * i + c]) << key;
        }
      }
    }
  }
  EXPECT_EQ(seen, 24);
}

TEST(Pictures, DoNotDependOnThreads) {
  const Photos photos(40, {3, 17});
  for (const Specs& transforms :
       {Specs{crop(24), flip()}, Specs{resize(40), resize(20), flip()},
        Specs{flip(), step(std::make_shared<Negative>()), crop(24)},
        Specs{step(std::make_shared<Negative>()), crop(24), step(std::make_shared<Negative>())}}) {
    LoaderOptions o = options(1);
    o.on_error = OnError::kSubstitute;
    const auto expected = image_hashes_of(photos.source(), transforms, o);
    for (int threads : {2, 3, 8}) {
      o.threads = threads;
      o.python_workers = threads - 2;
      EXPECT_EQ(image_hashes_of(photos.source(), transforms, o), expected);
    }
  }
}

TEST(Pictures, OfConcurrentLoadersEqualThoseOfASingleLoader) {
  const Photos photos(30, {11});
  const std::vector<Specs> pipelines{
      {crop(24), flip()},
      {resize(24), step(std::make_shared<Negative>())},
      {flip(), step(std::make_shared<Negative>()), crop(16)},
      {resize(40), resize(20)},
  };
  LoaderOptions o = options(2);
  o.on_error = OnError::kSubstitute;
  std::vector<std::vector<uint64_t>> expected;
  for (const Specs& transforms : pipelines) {
    expected.push_back(image_hashes_of(photos.source(), transforms, o));
  }
  std::vector<std::thread> consumers;
  for (size_t t = 0; t < pipelines.size(); ++t) {
    consumers.emplace_back([&, t] {
      for (int round = 0; round < 4; ++round) {
        LoaderOptions mine = o;
        mine.threads = 1 + static_cast<int>(t + round) % 3;
        Loader loader(photos.source(), {pipelines[t], {}, {}}, mine);
        std::vector<Batch> kept;  // slots that are returned late, and on this thread
        const size_t stop_after = round % 2 ? 1 + round : expected[t].size();
        for (size_t i = 0; i < stop_after; ++i) {
          auto batch = loader.next();
          ASSERT_TRUE(batch);
          EXPECT_EQ(hash_of(*batch), expected[t][i]);
          kept.push_back(std::move(*batch));
        }
      }
    });
  }
  for (std::thread& consumer : consumers) consumer.join();
}

// Pictures that steps inspect are decoded together, as far as memory allows.
TEST(Pictures, WithReadPixelsFinishIfMemoryIsScarce) {
  const Photos photos(40, {3, 17, 20}, /*scale=*/12);
  const Specs transforms{resize(300), {"RandomEqualize", {{"p", 0.7}}, {}, {}}, resize(16)};
  LoaderOptions o = options(1);
  o.on_error = OnError::kSubstitute;
  const auto expected = image_hashes_of(photos.source(), transforms, o);
  for (int threads : {2, 4}) {
    o.threads = threads;
    for (size_t beside : {8, 24}) {
      o.memory_limit = (size_t{12} * threads + beside) << 20;
      Loader loader(photos.source(), {transforms, {}, {}}, o);
      EXPECT_EQ(image_hashes_of(loader), expected);
      EXPECT_EQ(loader.quarantine().size(), 3u);
    }
  }
}

TEST(Pictures, WithReadPixelsStopMidwayAndRestart) {
  const Photos photos(40, {5});
  const Specs transforms{crop(40), {"RandomEqualize", {{"p", 0.7}}, {}, {}}, resize(16)};
  LoaderOptions o = options(3);
  o.on_error = OnError::kSubstitute;
  const auto expected = image_hashes_of(photos.source(), transforms, o);
  Loader loader(photos.source(), {transforms, {}, {}}, o);
  for (int round = 0; round < 20; ++round) {
    loader.set_epoch(0);
    for (int i = 0; i < round % 4; ++i) EXPECT_EQ(hash_of(*loader.next()), expected[i]);
  }
}

TEST(PythonSteps, RunOnOneThreadEvenForSubstitutes) {
  const Photos photos(40, {3, 17, 20});
  auto function = std::make_shared<Negative>(std::set<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  LoaderOptions o = options(3);
  o.on_error = OnError::kSubstitute;
  Loader loader(photos.source(), {{flip(), step(function), resize(16)}, {}, {}}, o);
  const auto got = image_hashes_of(loader);
  EXPECT_EQ(function->threads().size(), 1u);
  EXPECT_GE(loader.quarantine().size(), 3u);
  for (const BadRecord& bad : loader.quarantine()) {
    EXPECT_EQ(bad.action.rfind("substituted by record ", 0), 0u) << bad.action;
  }
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(hash_of(loader.batch(0, static_cast<int64_t>(i))), got[i]);
  }
}

// Each record needs much of the memory: records that wait at the step hold memory that other
// records of their run, and their substitutes, need.
TEST(PythonSteps, FinishIfMemoryIsScarce) {
  const Photos photos(40, {3, 17, 20}, /*scale=*/12);
  const Specs transforms{step(std::make_shared<Negative>()), resize(16),
                         step(std::make_shared<Negative>())};
  LoaderOptions o = options(1);
  o.on_error = OnError::kSubstitute;
  const auto expected = image_hashes_of(photos.source(), transforms, o);
  for (int threads : {1, 2, 4}) {
    o.threads = threads;
    o.memory_limit = (size_t{12} * threads + 14) << 20;
    Loader loader(photos.source(), {transforms, {}, {}}, o);
    EXPECT_EQ(image_hashes_of(loader), expected);
    EXPECT_EQ(loader.quarantine().size(), 3u);
  }
}

TEST(PythonSteps, StopMidwayAndRestart) {
  const Photos photos(40);
  const Specs transforms{flip(), step(std::make_shared<Negative>()), resize(16)};
  const auto expected = image_hashes_of(photos.source(), transforms, options(2));
  Loader loader(photos.source(), {transforms, {}, {}}, options(3));
  for (int round = 0; round < 20; ++round) {
    loader.set_epoch(0);
    for (int i = 0; i < round % 4; ++i) EXPECT_EQ(hash_of(*loader.next()), expected[i]);
  }
}

// One of the pictures is progressive, and so large that the memory suffices for it on one thread
// only.
TEST(Substitutes, OfARecordThatIsTooLargeDoNotDependOnThreads) {
  const Photos photos(40);
  TemporaryFolder folder;
  for (int64_t i = 0; i < photos.source()->size(); ++i) {
    FileSpec spec = spec_of(static_cast<int>(i), 1);
    if (i == 11) spec = {.width = 3000, .height = 2600, .progressive = true};
    const jpeg_test::Bytes bytes = jpeg_test::encode(spec);
    folder.write("data/" + file_name(static_cast<int>(i)),
                 {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  const SourcePtr source = open_source(folder / "data");
  for (const Specs& transforms : {Specs{resize(16)}, Specs{resize(40), resize(20)},
                                  Specs{step(std::make_shared<Negative>()), resize(16)}}) {
    LoaderOptions o = options(1);
    o.on_error = OnError::kSubstitute;
    o.memory_limit = size_t{52} << 20;
    Loader loader(source, {transforms, {}, {}}, o);
    const auto expected = image_hashes_of(loader);
    ASSERT_EQ(loader.quarantine().size(), 1u);
    EXPECT_EQ(loader.quarantine()[0].error.code->id, "HR0703");
    for (int threads : {2, 4}) {
      o.threads = threads;
      EXPECT_EQ(image_hashes_of(source, transforms, o), expected);
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(hash_of(loader.batch(0, static_cast<int64_t>(i))), expected[i]);
    }
  }
}

// A source on a file system that disappears.
class Outage final : public Source {
 public:
  explicit Outage(SourcePtr source, int64_t bad) : source_(std::move(source)), bad_(bad) {}
  int64_t size() const override { return source_->size(); }
  const Schema& schema() const override { return source_->schema(); }
  ReadStyle read_style() const override { return ReadStyle::kFiles; }
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      out[i].index = indices[i];
      if (indices[i] == bad_) {
        gone_ = true;
        out[i].result = Error{.code = &kPlanted, .what = "bad"};
      } else if (gone_) {
        ++asked_;
        out[i].result = Error{.code = &kPlantedOutage, .what = "gone"};
      } else {
        source_->read(indices.subspan(i, 1), wanted, out.subspan(i, 1));
      }
    }
  }
  std::string key(int64_t index) const override { return source_->key(index); }
  uint64_t fingerprint() const override { return source_->fingerprint(); }
  std::string description() const override { return "outage"; }
  int asked() const { return asked_; }

 private:
  const SourcePtr source_;
  const int64_t bad_;
  mutable std::atomic<bool> gone_{false};
  mutable std::atomic<int> asked_{0};
};

TEST(Substitutes, AreNotUsedForAnOutageWhichEndsTheRun) {
  const Photos photos(16);
  for (const Specs& transforms :
       {Specs{resize(8)}, Specs{step(std::make_shared<Negative>()), resize(8)}}) {
    auto source = std::make_shared<Outage>(photos.source(), 5);
    LoaderOptions o = options(1);
    o.shuffle = false;
    o.on_error = OnError::kSubstitute;
    Loader loader(source, {transforms, {}, {}}, o);
    try {
      while (loader.next()) {
      }
      FAIL();
    } catch (const Exception& e) {
      EXPECT_EQ(e.error().code->id, "HR0798");
    }
    EXPECT_LE(source->asked(), 16);
    EXPECT_TRUE(loader.quarantine().empty());
  }
}

TEST(Lists, StayWithinTheMemoryLimit) {
  const Photos photos(48, {}, /*scale=*/8);  // about 300 KiB each
  LoaderOptions o = options(2, 4);
  o.plan.ragged = Ragged::kList;
  o.memory_limit = size_t{32} << 20;
  Loader loader(photos.source(), {}, o);
  int64_t records = 0;
  while (auto batch = loader.next()) records += batch->size;
  EXPECT_EQ(records, 48);
  EXPECT_LE(loader.stats().memory_peak, o.memory_limit);
}

TEST(Lists, ABatchThatCannotFitIsRejectedWithTheSizes) {
  const Photos photos(48, {}, /*scale=*/8);
  LoaderOptions o = options(2, 48);
  o.plan.ragged = Ragged::kList;
  o.memory_limit = size_t{32} << 20;
  Loader loader(photos.source(), {}, o);
  try {
    loader.next();
    FAIL();
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code->id, "HR0705");
    EXPECT_NE(e.error().what.find("of the 48 records of batch 0"), std::string::npos);
  }
}

TEST(Files, LargerThanTheLimitAreRejectedUnread) {
  TemporaryFolder folder;
  setenv("HEADRACE_CACHE", (folder / "cache").c_str(), 1);
  folder.write("data/class/a.jpg", std::string(size_t{20} << 20, 'x'));
  Loader loader(open_source(folder / "data"), {{resize(8)}, {}, {}}, [] {
    LoaderOptions o = options(1, 1);
    o.memory_limit = size_t{32} << 20;
    return o;
  }());
  try {
    loader.next();
    FAIL();
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code->id, "HR0206");
    EXPECT_EQ(e.error().hint, "raise memory_limit, or remove the file");
  }
}

}  // namespace loader_pictures_test
}  // namespace headrace
