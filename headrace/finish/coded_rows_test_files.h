// SPDX-License-Identifier: Apache-2.0
// For tests of coded rows: JPEGs with recipes over them, rows of a slot while it is filled, and the
// expected results.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "headrace/finish/coded_rows_test_device.h"
#include "headrace/image/recipe_test_images.h"

namespace headrace::coded_rows_test {

using Place = DeviceDecoding::Place;

constexpr int kHeight = 40, kWidth = 56;
constexpr size_t kPixels = size_t{3} * kHeight * kWidth;
inline const Shape kShape{3, kHeight, kWidth};

// A JPEG as a source provides it: padded bytes, and the positions of its rows.
struct File {
  Bytes plain;
  Buffer bytes;
  std::vector<uint8_t> index;
  ImageHeader header;

  explicit File(const jpeg_test::FileSpec& spec) : plain(jpeg_test::encode(spec)) {
    jpeg_test::Decoder decoder;
    index = decoder.row_index(plain);
    header = *decoder.header(plain);
    bytes = Buffer(plain.size());
    std::memcpy(bytes.data(), plain.data(), plain.size());
  }
  Recipe recipe(ColorMode color = ColorMode::kRGB) const {
    return Recipe(EncodedImage{.bytes = bytes.bytes(),
                               .codec = jpeg_test::Decoder::codec(),
                               .header = header,
                               .color = color,
                               .row_index = {.known = index}});
  }
  Recipe recipe(const Window& window, bool flip = false) const {
    Recipe out = recipe();
    EXPECT_TRUE(out.crop(window));
    EXPECT_TRUE(!flip || out.flip_horizontal());
    return out;
  }
  // The window as libjpeg-turbo decodes it, (C, H, W).
  Bytes expected(const Window& window, bool flip = false) const {
    const jpeg_test::Pixels cut = jpeg_test::oracle(plain).slice(window);
    Bytes out;
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < window.height; ++y) {
        for (int x = 0; x < window.width; ++x) {
          const int from = flip ? window.width - 1 - x : x;
          out.push_back(cut.data[size_t((y * window.width + from) * 3 + c)]);
        }
      }
    }
    return out;
  }
};

inline Window drawn_window(const File& file, jpeg_test::Draw& draw) {
  return {draw.below(file.header.width - kWidth + 1), draw.below(file.header.height - kHeight + 1),
          kWidth, kHeight};
}

// Rows of a slot while it is filled.
struct Filling {
  explicit Filling(int64_t rows, const Shape& shape = kShape, size_t bytes = CodedRows::kUsualRow)
      : log(std::make_shared<DeviceDecoding>()),
        coded(shape, rows, log, bytes),
        slot(size_t(rows) * CodedRows::slot_row_bytes(shape, bytes)) {}
  std::shared_ptr<DeviceDecoding> log;
  CodedRows coded;
  Bytes slot;

  bool take(int64_t row, const Recipe& recipe) {
    return coded.take(row, 100 + row, recipe, slot.data());
  }
  // A row that the CPU decodes.
  Bytes put_pixels(int64_t row) {
    uint8_t* const to = coded.pixels(row, slot.data());
    if (!to) return {};
    Bytes out(kPixels);
    for (size_t i = 0; i < kPixels; ++i) out[i] = uint8_t(i * 7 + size_t(row));
    std::ranges::copy(out, to);
    return out;
  }
  int64_t counted(Place place) const { return log->counts()[size_t(place)]; }
};

inline std::vector<File> files() {
  const std::vector<std::vector<jpeg_test::Factors>> samplings = {
      {{1, 1}}, {{1, 1}, {1, 1}, {1, 1}}, {{2, 1}, {1, 1}, {1, 1}}, {{2, 2}, {1, 1}, {1, 1}}};
  std::vector<File> out;
  for (size_t i = 0; i < 8; ++i) {
    out.emplace_back(jpeg_test::FileSpec{.width = 60 + int(i) * 31,
                                         .height = 150 - int(i) * 13,
                                         .sampling = samplings[i % 4],
                                         .restart_interval = i % 3 == 2 ? 5 : 0});
  }
  return out;
}

// Rows of all kinds, with the expected pixels of each.
struct Mixture {
  std::vector<File> sources = files();
  Filling filling{24};
  std::vector<Bytes> expected;

  Mixture() {
    jpeg_test::Draw draw(3);
    for (int64_t row = 0; row < 24; ++row) {
      const File& file = sources[size_t(row) % sources.size()];
      if (row % 5 == 3) {
        expected.push_back(filling.put_pixels(row));
        continue;
      }
      const Window window = drawn_window(file, draw);
      const bool flip = draw.below(2) == 1;
      EXPECT_TRUE(filling.take(row, file.recipe(window, flip)));
      expected.push_back(file.expected(window, flip));
    }
  }
};

}  // namespace headrace::coded_rows_test
