// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/coded_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "headrace/device/device.h"
#include "headrace/device/simulated/simulated_device.h"
#include "headrace/finish/coded_rows_test_files.h"

namespace headrace::coded_rows_test {
namespace {

TEST(CodedRows, AreDecodedOnADeviceToLibjpegsPixels) {
  Mixture mixture;
  mixture.filling.coded.settle(24);
  std::vector<DevicePtr> devices{host_device()};
  for (uint64_t seed = 0; seed < 5; ++seed) {
    devices.push_back(std::make_shared<SimulatedDevice>(seed));
  }
  for (const DevicePtr& device : devices) {
    const Outcome made =
        on_device(mixture.filling.coded, mixture.filling.slot.data(), 24, kPixels, *device);
    EXPECT_EQ(made.rows, mixture.expected);
    EXPECT_TRUE(mixture.filling.coded.accepts(made.verdict.data()));
  }
}

TEST(CodedRows, EveryPartDecodedAloneGivesItsRows) {
  Mixture mixture;
  mixture.filling.coded.settle(24);
  for (int64_t first = 0; first <= 24; ++first) {
    for (int64_t last = first; last <= 24; ++last) {
      const auto part = mixture.filling.coded.part(first, last);
      const Outcome made =
          on_device(*part, mixture.filling.slot.data(), last - first, kPixels, *host_device());
      const std::vector<Bytes> wanted(mixture.expected.begin() + first,
                                      mixture.expected.begin() + last);
      EXPECT_EQ(made.rows, wanted) << first << " to " << last;
    }
  }
}

TEST(CodedRows, AreResizedAsTheCpuResizes) {
  const std::vector<File> sources = files();
  Renderer renderer;
  jpeg_test::Draw draw(9);
  Filling filling(30);
  std::vector<Bytes> expected;
  for (int64_t row = 0; row < 30; ++row) {
    const File& file = sources[size_t(row) % sources.size()];
    Recipe recipe = file.recipe(draw.window(file.header.width, file.header.height), row % 2 == 1);
    const Filter filters[] = {Filter::kBilinear, Filter::kBicubic, Filter::kNearest};
    ASSERT_TRUE(recipe.resize({kHeight, kWidth}, filters[row % 3]));
    ASSERT_TRUE(filling.take(row, recipe));
    Bytes& wanted = expected.emplace_back(kPixels);
    RenderTask task;
    task.recipe = &recipe;
    task.target.data = wanted.data();
    renderer.render({&task, 1});
    ASSERT_TRUE(task.result);
  }
  filling.coded.settle(30);
  const Outcome made = on_device(filling.coded, filling.slot.data(), 30, kPixels,
                                 *std::make_shared<SimulatedDevice>(2));
  EXPECT_EQ(made.rows, expected);
}

// If a part is scattered over the slot, only its own rows are copied, along with small ones in
// between.
TEST(CodedRows, OnlyTheBytesOfAPartAreCopiedForIt) {
  const File large(jpeg_test::FileSpec{
      .width = 700, .height = 640, .sampling = {{1, 1}, {1, 1}, {1, 1}}, .quality = 98});
  const Shape shape{3, 640, 700};
  Filling filling(8, shape, size_t{1} << 20);
  for (const int64_t row : {0, 4, 1, 5, 2, 6, 3, 7}) {
    ASSERT_TRUE(filling.take(row, large.recipe()));
  }
  filling.coded.settle(8);
  const auto together = [](const CodedRows& rows, int64_t first, int64_t last) {
    auto part = rows.part(first, last);
    part->put_together();
    return part;
  };
  const auto whole = together(filling.coded, 0, 8);
  EXPECT_EQ(whole->slot_pieces().size(), 1u);
  const size_t all = whole->slot_bytes();
  EXPECT_EQ(all, filling.coded.slot_end());
  ASSERT_GT(all / 8, size_t{200} << 10);
  const auto part = together(filling.coded, 0, 4);
  EXPECT_EQ(part->slot_pieces().size(), 4u);
  EXPECT_EQ(part->slot_bytes(), all / 2);
  EXPECT_EQ(together(*part, 1, 3)->slot_bytes(), all / 4);
  const Outcome made =
      on_device(*part, filling.slot.data(), 4, size_t(element_count(shape)), *host_device());
  const Bytes expected = large.expected({0, 0, 700, 640});
  for (const Bytes& row : made.rows) EXPECT_EQ(row, expected);
}

// Noise that takes more bytes than a slot has room for.
TEST(CodedRows, RoomForThePixelsOfEveryRowIsReserved) {
  const File noisy(jpeg_test::FileSpec{
      .width = 900, .height = 900, .sampling = {{1, 1}, {1, 1}, {1, 1}}, .quality = 100});
  ASSERT_GT(noisy.plain.size(), size_t{600} << 10);
  for (uint32_t seed = 0; seed < 10; ++seed) {
    jpeg_test::Draw draw(seed);
    Filling filling(16);
    Recipe recipe = noisy.recipe();
    ASSERT_TRUE(recipe.resize({kHeight, kWidth}, Filter::kBilinear));
    std::vector<Bytes> written(16);
    for (int n = 0; n < 200; ++n) {  // rows are taken repeatedly, in any order
      const int64_t row = draw.below(16);
      if (draw.below(3) > 0 && filling.take(row, recipe)) continue;
      written[size_t(row)] = filling.put_pixels(row);
      EXPECT_EQ(written[size_t(row)].size(), kPixels) << "no room for row " << row;
    }
    EXPECT_GT(filling.counted(Place::kNoRoom), 0);
    for (int64_t row = 0; row < 16; ++row) {
      written[size_t(row)] = filling.put_pixels(row);
      ASSERT_EQ(written[size_t(row)].size(), kPixels);
    }
    filling.coded.settle(16);
    const Outcome made = on_device(filling.coded, filling.slot.data(), 16, kPixels, *host_device());
    EXPECT_EQ(made.rows, written);  // rows do not overlap
    EXPECT_TRUE(made.verdict.empty());
  }
}

// A larger budget per record makes room for large pictures.
TEST(CodedRows, LargeImagesFitIntoALargeBudget) {
  const File noisy(jpeg_test::FileSpec{
      .width = 900, .height = 900, .sampling = {{1, 1}, {1, 1}, {1, 1}}, .quality = 100});
  Filling filling(6, kShape, noisy.plain.size());
  Recipe recipe = noisy.recipe();
  ASSERT_TRUE(recipe.resize({kHeight, kWidth}, Filter::kBilinear));
  for (int64_t row = 0; row < 6; ++row) EXPECT_TRUE(filling.take(row, recipe));
  EXPECT_EQ(filling.counted(Place::kNoRoom), 0);
}

TEST(CodedRows, ThreadsMayFillThemConcurrently) {
  const std::vector<File> sources = files();
  Filling filling(64);
  std::vector<Bytes> expected(64);
  std::atomic<int64_t> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int64_t row = next++; row < 64; row = next++) {
        jpeg_test::Draw draw{uint32_t(row)};
        const File& file = sources[size_t(row) % sources.size()];
        const Window window = drawn_window(file, draw);
        if (row % 4 == 1) {
          expected[size_t(row)] = filling.put_pixels(row);
        } else {
          EXPECT_TRUE(filling.take(row, file.recipe(window)));
          expected[size_t(row)] = file.expected(window);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  filling.coded.settle(64);
  const Outcome made = on_device(filling.coded, filling.slot.data(), 64, kPixels, *host_device());
  EXPECT_EQ(made.rows, expected);
}

// Missing rows, rows transferred separately, and rows that moved up because others are left out.
TEST(CodedRows, RowsMovedToCloseGapsAreDecodedCorrectly) {
  Mixture mixture;
  CodedRows& coded = mixture.filling.coded;
  coded.leave(2);
  std::vector<Bytes> expected;
  for (const int64_t row : {0, 1, 2, 5, 8, 13, 23}) {
    if (row != int64_t(expected.size())) coded.move(row, int64_t(expected.size()));
    expected.push_back(mixture.expected[size_t(row)]);
  }
  coded.settle(int64_t(expected.size()));
  Outcome made = on_device(coded, mixture.filling.slot.data(), int64_t(expected.size()), kPixels,
                           *host_device());
  made.rows[2] = expected[2] = {};  // any value stays within the memory
  EXPECT_EQ(made.rows, expected);
}

TEST(CodedRows, ImagesDecodedByTheCpuAreCountedByReason) {
  const File file(jpeg_test::FileSpec{.width = 80, .height = 70});
  Filling filling(8);
  const auto expect = [&](Place place, const Recipe& recipe) {
    const int64_t before = filling.counted(place);
    EXPECT_EQ(filling.take(0, recipe), place == Place::kDevice);
    EXPECT_EQ(filling.counted(place), before + 1) << DeviceDecoding::text_of(place);
  };
  const Window window{5, 6, kWidth, kHeight};
  expect(Place::kDevice, file.recipe(window));
  File other = File(jpeg_test::FileSpec{.width = 80, .height = 70});
  other.index.clear();
  expect(Place::kNoIndex, other.recipe(window));
  other.index = File(jpeg_test::FileSpec{.width = 200, .height = 300}).index;  // of another file
  expect(Place::kFormat, other.recipe(window));
  Recipe gray = file.recipe(ColorMode::kGray);  // one channel, but three are delivered
  EXPECT_TRUE(gray.crop(window));
  expect(Place::kFormat, gray);
  expect(Place::kFormat, file.recipe(ColorMode::kRGBA));
  expect(Place::kPixels, recipe_test::recipe_of(recipe_test::random_grid(3, kHeight, kWidth, 1)));
  const double black[] = {0, 0, 0};
  Recipe bordered = file.recipe(window);
  EXPECT_TRUE(bordered.pad(2, 2, 2, 2, black));
  Recipe part = bordered, resized = bordered, border = bordered, colors = file.recipe(window);
  EXPECT_TRUE(part.crop({1, 0, kWidth, kHeight}));
  expect(Place::kDevice, part);
  EXPECT_TRUE(resized.resize({kHeight, kWidth}, Filter::kBilinear));
  expect(Place::kResizedBorder, resized);
  EXPECT_TRUE(border.crop({0, 0, 2, 2}));
  EXPECT_TRUE(border.pad(kWidth - 2, kHeight - 2, 0, 0, black));
  expect(Place::kDevice, border);
  EXPECT_TRUE(colors.map({MapStep::Kind::kConvert, DType::kFloat32, true, {}, {}}));
  expect(Place::kColors, colors);
  const std::vector<int64_t> bad{100};  // the record of row 0
  filling.log->distrust(bad);
  expect(Place::kDamaged, file.recipe(window));
  filling.coded.count_cpu_decode();
  EXPECT_EQ(filling.counted(Place::kEnd), 1);
}

TEST(CodedRows, AnImageThatNeedsTooMuchDeviceMemoryIsDecodedOnTheCpu) {
  const File file(jpeg_test::FileSpec{
      .width = 4200, .height = 4200, .sampling = {{1, 1}, {1, 1}, {1, 1}}, .quality = 20});
  Filling filling(2);
  Recipe recipe = file.recipe();
  ASSERT_TRUE(recipe.resize({kHeight, kWidth}, Filter::kBilinear));
  EXPECT_FALSE(filling.take(0, recipe));
  EXPECT_EQ(filling.counted(Place::kLarge), 1);
  Recipe part = file.recipe({0, 0, 2000, 2000});
  ASSERT_TRUE(part.resize({kHeight, kWidth}, Filter::kBilinear));
  EXPECT_TRUE(filling.take(1, part) || filling.counted(Place::kNoRoom) == 1);
}

}  // namespace
}  // namespace headrace::coded_rows_test
