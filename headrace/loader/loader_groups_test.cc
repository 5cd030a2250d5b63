// SPDX-License-Identifier: Apache-2.0
// The number of records that a worker decodes in one call: as many as their decoder has lanes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/loader.h"

namespace headrace {
namespace {

constexpr int kSide = 4;

std::mutex calls_mutex;
std::vector<size_t> calls;  // pictures of each decode call

// A gray value for the whole picture.
class FlatDecoder final : public ImageDecoder {
 public:
  explicit FlatDecoder(int lanes) : lanes_(lanes) {}
  Result<ImageHeader> read_header(std::span<const uint8_t>) override {
    return ImageHeader{.width = kSide, .height = kSide, .channels = 1};
  }
  int lanes() const override { return lanes_; }
  void decode(std::span<DecodeJob> jobs) override {
    {
      std::lock_guard lock(calls_mutex);
      calls.push_back(jobs.size());
    }
    for (DecodeJob& job : jobs) {
      std::array<uint8_t, 3 * kSide * kSide + 64> plane;
      plane.fill(job.bytes[6]);
      RowBlock block{.y = 0, .count = job.window.height, .step = 1, .stride = job.window.width};
      block.channel.fill(plane.data());
      job.sink->rows(block);
      job.result = {};
      job.warnings = 0;
    }
  }

 private:
  const int lanes_;
};

template <int kLanes>
CodecRecord flat_codec(std::string_view name) {
  return {.name = name,
          .doc = "Images that are made up.",
          .oracle = "itself",
          .suffixes = {},
          .sniff =
              [](std::span<const uint8_t> bytes) {
                return std::memcmp(bytes.data(), "HRFLT", 5) == 0 && bytes[5] == kLanes;
              },
          .make = []() -> std::unique_ptr<ImageDecoder> {
            return std::make_unique<FlatDecoder>(kLanes);
          }};
}
const CodecRecord kOneLane = flat_codec<1>("flat_1"), kFewLanes = flat_codec<5>("flat_5"),
                  kManyLanes = flat_codec<24>("flat_24");
const Register<CodecRecord> registered_one(kOneLane), registered_few(kFewLanes),
    registered_many(kManyLanes);

// Pictures whose decoders have these lanes, in turn.
class Flats final : public Source {
 public:
  explicit Flats(std::vector<int> lanes) : lanes_(std::move(lanes)) {
    schema_.push_back({.name = "image", .kind = FieldKind::kImage, .encoded = true});
  }
  int64_t size() const override { return 240; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kMemory; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      RecordData& data = out[i];
      data.index = indices[i];
      data.result = {};
      data.owned.resize(1);
      data.owned[0].resize(16);
      std::memcpy(data.owned[0].data(), "HRFLT", 5);
      data.owned[0].data()[5] = static_cast<uint8_t>(lanes_[indices[i] % lanes_.size()]);
      data.owned[0].data()[6] = static_cast<uint8_t>(indices[i]);
      data.fields.resize(1);
      data.fields[0] = {.bytes = data.owned[0].bytes(), .shape = {}};
    }
  }
  std::string key(int64_t index) const override { return "picture " + std::to_string(index); }
  uint64_t fingerprint() const override { return 99; }
  std::string description() const override { return "flats"; }

 private:
  const std::vector<int> lanes_;
  Schema schema_;
};

// The largest number of pictures in a call, after an epoch with correct values.
size_t largest_call(std::vector<int> lanes) {
  calls.clear();
  LoaderOptions options;
  options.batch_size = 240;
  options.threads = 1;
  options.shuffle = false;
  options.memory_limit = size_t{256} << 20;
  const Spec crop{"CenterCrop", {{"size", int64_t{kSide}}}, {}, {}};
  Loader loader(std::make_shared<Flats>(std::move(lanes)), {{crop}, {}, {}}, options);
  while (auto batch = loader.next()) {
    const auto* pixels = static_cast<const uint8_t*>((*batch)["image"].view.data);
    for (int64_t row = 0; row < batch->size; ++row) {
      for (int i = 0; i < 3 * kSide * kSide; ++i) {
        EXPECT_EQ(pixels[row * 3 * kSide * kSide + i], row);
      }
    }
  }
  return *std::max_element(calls.begin(), calls.end());
}

TEST(Groups, AreAsLargeAsTheDecoderHasLanes) {
  EXPECT_EQ(largest_call({1}), 1u);
  EXPECT_EQ(largest_call({5}), 5u);
  EXPECT_GT(largest_call({24}), 16u);
  EXPECT_LE(largest_call({24}), 24u);
}

TEST(Groups, AreLimitedByTheRecordWithTheFewestLanes) {
  EXPECT_LE(largest_call({24, 5}), 5u);
  EXPECT_LE(largest_call({24, 24, 24, 1}), 4u);
}

}  // namespace
}  // namespace headrace
