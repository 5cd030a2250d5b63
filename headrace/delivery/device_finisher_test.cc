// SPDX-License-Identifier: Apache-2.0
// Finishing a batch of clips equals finishing its frames one by one, in any division into whole
// records.
#include "headrace/delivery/device_finisher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "headrace/device/cuda/cuda_devices.h"
#include "headrace/device/device.h"
#include "headrace/device/simulated/simulated_device.h"
#include "headrace/executor/memory/slots.h"
#include "headrace/finish/unfinished_pictures.h"

namespace headrace {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr int64_t kClips = 9, kFrames = 5, kPictures = kClips * kFrames;
constexpr int kHeight = 7, kWidth = 12;
constexpr size_t kSamples = size_t{3} * kHeight * kWidth;
constexpr DType kDType = DType::kFloat32;
constexpr size_t kElement = sizeof(float);

const PixelMap* scaled() {
  return PixelMap::identity(DType::kUInt8)->then({MapStep::Kind::kConvert, kDType, true, {}, {}});
}

std::shared_ptr<const QuickTable> table_of(std::mt19937& random) {
  ColorTable table{};
  for (auto& channel : table.of) {
    for (uint8_t& value : channel) value = uint8_t(random());
  }
  return std::make_shared<const QuickTable>(table);
}

Bytes slot() {
  Bytes out(kPictures * kSamples);
  std::mt19937 random(1);
  for (uint8_t& sample : out) sample = uint8_t(random());
  return out;
}

// The same pictures, several per row: each frame has its own edits, some have a table, some are
// already finished.
std::shared_ptr<UnfinishedPictures> pictures(int64_t of_row, MemoryFormat format,
                                             size_t mixings = 0) {
  auto out = std::make_shared<UnfinishedPictures>(Shape{3, kHeight, kWidth}, kDType, format,
                                                  kPictures / of_row, of_row, mixings, make_pages);
  std::mt19937 random(2);
  for (int64_t picture = 0; picture < kPictures; ++picture) {
    const uint32_t draw = random();
    RecipeEdit edit{.edit = {}, .size = {kHeight, kWidth}, .map = scaled(), .fill = {}};
    edit.edit.flip = draw & 1;
    edit.edit.cut_left = int(draw >> 1) % 8;
    edit.edit.cut_right = edit.edit.cut_left + 4;
    edit.edit.cut_bottom = int(draw >> 4) % kHeight;
    edit.edit.cut[1] = draw;
    if (draw >> 8 & 1) edit.table = table_of(random);
    EXPECT_TRUE(out->set(picture, edit));
    if (picture / kFrames != 3) continue;
    uint8_t* const to = out->finished(picture, "a reason");
    for (size_t i = 0; i < kSamples * kElement; ++i) to[i] = uint8_t(random());
  }
  return out;
}

struct Finished {
  Bytes bytes;
  std::vector<int64_t> rows;  // of each part
  size_t scratch = 0;
};

Finished finished(const DevicePtr& device, const std::shared_ptr<UnfinishedPictures>& rows,
                  size_t limit) {
  const Bytes from = slot();
  rows->settle(rows->rows());
  DeviceFinisher finisher(device, {.lanes = 2, .lane_bytes = limit});
  const StreamPtr stream = device->make_stream();
  const size_t bytes = kPictures * kSamples * kElement;
  const std::shared_ptr<void> there = device->allocate(bytes);
  Finished out{.bytes = Bytes(bytes), .rows = {}};
  const std::vector<DeviceFinisher::Part> parts = finisher.parts_of(*rows, from.data());
  int64_t first = 0;
  for (const DeviceFinisher::Part& part : parts) {
    EXPECT_EQ(part.first, first);
    first += part.rows->rows();
    out.rows.push_back(part.rows->rows());
    const size_t at = size_t(part.first) * (bytes / size_t(rows->rows()));
    finisher.finish(part, {}, static_cast<uint8_t*>(there.get()) + at);
  }
  EXPECT_EQ(first, rows->rows());
  finisher.join(*stream);
  stream->copy(out.bytes.data(), there.get(), bytes);
  stream->synchronize();
  out.scratch = finisher.stats().bytes;
  return out;
}

constexpr size_t kNoLimit = size_t{1} << 30;
constexpr MemoryFormat kPlanar = MemoryFormat::kChannelsFirst;

enum class Where { kHost, kSimulated, kGpu };

std::vector<Where> everywhere() {
  std::vector<Where> all{Where::kHost, Where::kSimulated};
  if (cuda_devices().count > 0) all.push_back(Where::kGpu);
  return all;
}
std::string name_of_place(const testing::TestParamInfo<Where>& info) {
  static const char* const names[] = {"Host", "Simulated", "Gpu"};
  return names[static_cast<int>(info.param)];
}

class DeviceFinisherAt : public testing::TestWithParam<Where> {
 protected:
  static std::vector<DevicePtr> devices() {
    if (GetParam() != Where::kSimulated) {
      return {GetParam() == Where::kGpu ? open_device("cuda") : host_device()};
    }
    std::vector<DevicePtr> out;
    for (uint64_t seed = 0; seed < 10; ++seed) {
      out.push_back(std::make_shared<SimulatedDevice>(seed));
    }
    return out;
  }
  // The reference that loader_finish_test.cc has verified.
  static Bytes one_by_one(MemoryFormat format = kPlanar) {
    return finished(host_device(), pictures(1, format), kNoLimit).bytes;
  }
};

TEST_P(DeviceFinisherAt, FramesOfClipsAreFinishedLikeImages) {
  for (const MemoryFormat format : {kPlanar, MemoryFormat::kChannelsLast}) {
    const Bytes expected = one_by_one(format);
    for (const DevicePtr& device : devices()) {
      EXPECT_EQ(finished(device, pictures(kFrames, format), kNoLimit).bytes, expected);
      EXPECT_EQ(finished(device, pictures(kPictures, format), kNoLimit).bytes, expected);
    }
  }
}

TEST_P(DeviceFinisherAt, ClipsThatNeedMoreScratchMemoryAreFinishedInPartsOfWholeRecords) {
  constexpr size_t kClip = kFrames * (kSamples + 3 * 256 * (1 + kElement) + sizeof(PictureEdit));
  const Bytes expected = one_by_one();
  for (const size_t limit : {size_t{1}, kClip + 8192, 3 * kClip + 8192}) {
    for (const DevicePtr& device : devices()) {
      const Finished got = finished(device, pictures(kFrames, kPlanar), limit);
      EXPECT_EQ(got.bytes, expected);
      EXPECT_GT(got.rows.size(), 1u);
      // Two lanes, with an eighth in reserve; a single record may use as much as it needs.
      EXPECT_LE(got.scratch, 2 * (std::max(limit, kClip + 8192) * 9 / 8 + 4096));
      if (limit > 1) continue;
      EXPECT_EQ(got.rows, std::vector<int64_t>(kClips, 1));
    }
  }
}

TEST_P(DeviceFinisherAt, MixedClipsAreFinishedTogetherAndMixedFrameByFrame) {
  const RowMix mix{.own = 0.25F, .rest = 0.75F, .top = 1, .left = 2, .bottom = 6, .right = 9};
  const auto mixed = [&] {
    auto out = pictures(kFrames, kPlanar, 1);
    for (int64_t row = 0; row < kClips; row += 3) {
      const int64_t rows[] = {row, row + 1, row + 2};
      const RowMix mixes[] = {mix, mix, mix};
      out->mix(0, rows, mixes);
    }
    return out;
  };
  const Bytes plain = one_by_one();
  // A sample of clip 7, which is mixed with clip 6.
  const auto sample = [](const Bytes& bytes, int64_t clip, int64_t frame, int y, int x) {
    float value = 0;
    const auto line = size_t(((clip * kFrames + frame) * 3 + 2) * kHeight + y);
    std::memcpy(&value, bytes.data() + (line * kWidth + size_t(x)) * kElement, kElement);
    return value;
  };
  for (const DevicePtr& device : devices()) {
    const Finished whole = finished(device, mixed(), kNoLimit);
    const Finished parts = finished(device, mixed(), 1);
    EXPECT_EQ(whole.rows, std::vector<int64_t>{kClips});
    EXPECT_EQ(parts.rows, (std::vector<int64_t>{3, 3, 3}));
    EXPECT_EQ(parts.bytes, whole.bytes);
    for (int64_t frame = 0; frame < kFrames; ++frame) {
      for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
          const bool inside = mix.top <= y && y < mix.bottom && mix.left <= x && x < mix.right;
          const float own = sample(plain, 7, frame, y, x), rest = sample(plain, 6, frame, y, x);
          const float expected = inside ? mix.own * own + mix.rest * rest : own;
          // Erased samples are any bits.
          if (!(std::abs(own) < 2 && std::abs(rest) < 2)) continue;
          EXPECT_NEAR(sample(whole.bytes, 7, frame, y, x), expected, 1e-6);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Places, DeviceFinisherAt, testing::ValuesIn(everywhere()), name_of_place);

TEST(UnfinishedClips, RemainingClipsMoveUpAfterADroppedOne) {
  const auto rows = pictures(kFrames, kPlanar);
  const auto alone = pictures(1, kPlanar);
  for (int64_t row = 2; row + 1 < kClips; ++row) {
    rows->move(row + 1, row);
    for (int64_t i = 0; i < kFrames; ++i) alone->move((row + 1) * kFrames + i, row * kFrames + i);
  }
  rows->settle(kClips - 1);
  alone->settle((kClips - 1) * kFrames);
  EXPECT_EQ(rows->rows(), kClips - 1);
  rows->put_together();
  alone->put_together();
  EXPECT_EQ(rows->slot_bytes(), (kClips - 1) * kFrames * kSamples);
  EXPECT_TRUE(std::ranges::equal(rows->parameters(), alone->parameters()));
  EXPECT_EQ(rows->transfer_bytes(), alone->transfer_bytes());
  EXPECT_EQ(rows->finished_before(), (std::map<std::string_view, int64_t>{{"a reason", 1}}));
  EXPECT_EQ(alone->finished_before().at("a reason"), kFrames);
  const auto part = rows->part(1, 3);
  EXPECT_EQ(part->slot_pieces()[0].begin, kFrames * kSamples);
  EXPECT_EQ(part->slot_pieces()[0].bytes, 2 * kFrames * kSamples);
}

}  // namespace
}  // namespace headrace
