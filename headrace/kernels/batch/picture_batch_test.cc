// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/picture_batch.h"

#include <algorithm>
#include <functional>

#include "headrace/base/error.h"
#include "headrace/kernels/batch/batch_test_devices.h"

namespace headrace {
namespace picture_batch_test {

// The reference: one picture, edited step by step. [c][y][x].
struct Planes {
  int channels = 0, height = 0, width = 0;
  std::vector<uint32_t> values;
  uint32_t& at(int c, int y, int x) { return values[(size_t(c) * height + y) * width + x]; }
};

Planes empty_planes(int channels, int height, int width) {
  return {channels, height, width, std::vector<uint32_t>(size_t(channels) * height * width)};
}

Planes mapped(Planes in, const std::function<uint32_t(int, uint32_t)>& map) {
  const size_t plane = size_t(in.height) * in.width;
  for (size_t i = 0; i < in.values.size(); ++i) {
    in.values[i] = map(static_cast<int>(i / plane), in.values[i]);
  }
  return in;
}

// With borders wide enough for any crop of the tests, filled with each channel's padding.
constexpr int kBorder = 64;
Planes bordered(Planes in, const uint32_t padding[]) {
  Planes out = empty_planes(in.channels, in.height + 2 * kBorder, in.width + 2 * kBorder);
  for (int c = 0; c < out.channels; ++c) {
    for (int y = 0; y < out.height; ++y) {
      for (int x = 0; x < out.width; ++x) out.at(c, y, x) = padding[c];
    }
    for (int y = 0; y < in.height; ++y) {
      for (int x = 0; x < in.width; ++x) {
        out.at(c, y + kBorder, x + kBorder) = in.at(c, y, x);
      }
    }
  }
  return out;
}

Planes cropped(Planes in, int top, int left, int height, int width) {
  Planes out = empty_planes(in.channels, height, width);
  for (int c = 0; c < out.channels; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) out.at(c, y, x) = in.at(c, top + y, left + x);
    }
  }
  return out;
}

Planes mirrored(Planes in) {
  for (int row = 0; row < in.channels * in.height; ++row) {
    std::reverse(in.values.begin() + size_t(row) * in.width,
                 in.values.begin() + size_t(row + 1) * in.width);
  }
  return in;
}

Planes cut(Planes in, const PictureEdit& edit) {
  for (int c = 0; c < in.channels; ++c) {
    for (int y = std::max(edit.cut_top, 0); y < std::min(edit.cut_bottom, in.height); ++y) {
      for (int x = std::max(edit.cut_left, 0); x < std::min(edit.cut_right, in.width); ++x) {
        in.at(c, y, x) = edit.cut[c];
      }
    }
  }
  return in;
}

struct Case {
  int channels = 1, height = 1, width = 1, pictures = 1;
  int to_height = 1, to_width = 1, count = 1;
  bool from_channels_last = false, to_channels_last = false;
  bool edits = true;
  bool in_words = false;  // words hold four columns, and nothing is padded
};

Case random_case(TestDraws& draws) {
  Case c;
  c.channels = draws.between(1, 4);
  c.height = draws.below(5) ? draws.between(1, 40) : 1;
  c.width = draws.below(5) ? draws.between(1, 80) : 1;
  c.pictures = draws.between(1, 9);
  c.count = draws.between(1, 12);
  c.edits = draws.below(6) != 0;
  c.to_height = c.edits ? draws.between(1, 45) : c.height;
  c.to_width = c.edits ? draws.between(1, 70) : c.width;
  c.from_channels_last = draws.below(2);
  c.to_channels_last = draws.below(2);
  if (draws.below(2)) {
    c.in_words = true;
    c.from_channels_last = c.to_channels_last = c.channels == 1 && draws.below(2);
    c.width = (c.width + 3) / 4 * 4;
    c.to_width = std::min(c.width, (c.to_width + 3) / 4 * 4);
    c.to_height = std::min(c.height, c.to_height);
  }
  return c;
}

constexpr int kSets = 3;  // of tables

PictureEdit random_edit(TestDraws& draws, const Case& c) {
  PictureEdit edit;
  const int odd = draws.below(8);  // sometimes completely outside
  edit.top = odd == 0 ? c.height + 1 : draws.between(-12, 12);
  edit.left = odd == 1 ? -c.to_width - 1 : draws.between(-12, 12);
  edit.top = std::clamp(edit.top, -kBorder, c.height + kBorder - c.to_height);
  edit.left = std::clamp(edit.left, -kBorder, c.width + kBorder - c.to_width);
  if (c.in_words) {
    edit.top = std::clamp(edit.top, 0, c.height - c.to_height);
    edit.left = std::clamp(edit.left / 4 * 4, 0, c.width - c.to_width);
  }
  edit.flip = draws.below(2);
  edit.tables = draws.below(kSets);
  if (draws.below(3)) {
    edit.cut_top = draws.between(-5, c.to_height);
    edit.cut_left = draws.between(-5, c.to_width);
    edit.cut_bottom = edit.cut_top + draws.between(-2, 20);
    edit.cut_right = edit.cut_left + draws.between(-2, 20);
  }
  return edit;
}

PictureStrides strides_of(bool channels_last, int channels, int height, int width) {
  return channels_last ? PictureStrides::channels_last(channels, height, width)
                       : PictureStrides::channels_first(channels, height, width);
}

size_t offset(const PictureStrides& s, int64_t picture, int c, int y, int x) {
  return picture * s.picture + y * s.row + x * s.column + c * s.channel;
}

class PictureBatchOn : public OnTestDevice {
 protected:
  // One random batch of samples of type Stored, mapped by a table or unchanged.
  template <class Element, class Stored>
  void expect_case(TestDraws& draws, bool by_table) {
    const Case c = random_case(draws);
    const PictureStrides from = strides_of(c.from_channels_last, c.channels, c.height, c.width);
    const PictureStrides to = strides_of(c.to_channels_last, c.channels, c.to_height, c.to_width);
    const auto pictures = draws.values<Stored>(size_t(from.picture) * c.pictures);
    const auto table = draws.values<Element>(size_t(kSets) * c.channels * 256);
    std::vector<int64_t> indices(c.count);
    for (int64_t& index : indices) index = draws.below(c.pictures);
    std::vector<PictureEdit> edits(c.count);
    for (PictureEdit& edit : edits) {
      edit = c.edits ? random_edit(draws, c) : PictureEdit{};
      for (uint32_t& value : edit.cut) value = static_cast<Element>(draws.below(1 << 30));
    }

    PictureBatch batch{.pictures = put(pictures),
                       .from = from,
                       .channels = c.channels,
                       .height = c.height,
                       .width = c.width,
                       .choice = RowChoice::indices(put(indices)),
                       .count = c.count,
                       .edits = c.edits ? put(edits) : nullptr,
                       .to = to,
                       .to_height = c.to_height,
                       .to_width = c.to_width};
    batch.map.bytes = sizeof(Element);
    if (by_table) batch.map.table = put(table);
    for (int i = 0; i < 4; ++i) {
      batch.map.padding[i] = static_cast<Element>(draws.below(1 << 30));
    }
    Element* const out = room<Element>(size_t(to.picture) * c.count);
    batch.batch = out;
    check(batch);
    run_here(batch);

    std::vector<Element> expected(size_t(to.picture) * c.count);
    for (int i = 0; i < c.count; ++i) {
      Planes picture = empty_planes(c.channels, c.height, c.width);
      for (int k = 0; k < c.channels; ++k) {
        for (int y = 0; y < c.height; ++y) {
          for (int x = 0; x < c.width; ++x) {
            picture.at(k, y, x) = pictures[offset(from, indices[i], k, y, x)];
          }
        }
      }
      const PictureEdit& edit = edits[i];
      const auto look = [&](int channel, uint32_t value) {
        const int set = edit.tables * c.channels + channel;
        return by_table ? table[size_t(set) * 256 + value] : value;
      };
      picture = bordered(mapped(picture, look), batch.map.padding);
      picture = cropped(picture, edit.top + kBorder, edit.left + kBorder, c.to_height, c.to_width);
      if (edit.flip) picture = mirrored(picture);
      picture = cut(picture, edit);
      for (int k = 0; k < c.channels; ++k) {
        for (int y = 0; y < c.to_height; ++y) {
          for (int x = 0; x < c.to_width; ++x) {
            expected[offset(to, i, k, y, x)] = static_cast<Element>(picture.at(k, y, x));
          }
        }
      }
    }
    ASSERT_EQ(get(out, expected.size()), expected)
        << c.channels << " x " << c.height << " x " << c.width << " -> " << c.to_height << " x "
        << c.to_width;
  }
};

TEST_P(PictureBatchOn, CropsPadsFlipsErasesAndMapsAsStepByStep) {
  TestDraws draws(11);
  for (int round = 0; round < 60; ++round) {
    expect_case<uint32_t, uint8_t>(draws, true);
    expect_case<uint16_t, uint8_t>(draws, true);
    expect_case<uint8_t, uint8_t>(draws, true);
  }
}

TEST_P(PictureBatchOn, PreservesTheBitsOfElementsOfAnyWidth) {
  TestDraws draws(12);
  for (int round = 0; round < 60; ++round) {
    expect_case<uint32_t, uint32_t>(draws, false);
    expect_case<uint16_t, uint16_t>(draws, false);
    expect_case<uint8_t, uint8_t>(draws, false);
  }
}

TEST_P(PictureBatchOn, WritesOnlyItsOwnPartOfAWiderBatch) {
  // The batch is a column of a larger array whose other columns must not change.
  const std::vector<uint8_t> pictures{1, 2, 3, 4, 5, 6};
  uint8_t* const out = room<uint8_t>(8);
  PictureBatch batch{.pictures = put(pictures),
                     .from = PictureStrides::channels_first(1, 2, 3),
                     .height = 2,
                     .width = 3,
                     .count = 1,
                     .batch = out,
                     .to = {.picture = 8, .row = 4, .column = 1, .channel = 8},
                     .to_height = 2,
                     .to_width = 3};
  run_here(batch);
  EXPECT_EQ(get(out, 8), (std::vector<uint8_t>{1, 2, 3, 0xa5, 4, 5, 6, 0xa5}));
}

TEST_P(PictureBatchOn, NoImagesOrPixelsMeanNoWork) {
  PictureBatch batch{.from = PictureStrides::channels_first(3, 4, 4),
                     .channels = 3,
                     .height = 4,
                     .width = 4,
                     .count = 0,
                     .to = PictureStrides::channels_first(3, 4, 4),
                     .to_height = 4,
                     .to_width = 4};
  run_here(batch);
  batch.count = 5;
  batch.to_width = 0;
  run_here(batch);
  batch.to_width = 4;
  batch.to_height = 0;
  run_here(batch);
  EXPECT_EQ(batch.items(), 0);
}

TEST_P(PictureBatchOn, AnImageWithoutPixelsIsAllPadding) {
  uint16_t* const out = room<uint16_t>(2 * 3);
  PictureBatch batch{.pictures = nullptr,
                     .from = PictureStrides::channels_first(1, 0, 0),
                     .count = 1,
                     .batch = out,
                     .to = PictureStrides::channels_first(1, 2, 3),
                     .to_height = 2,
                     .to_width = 3};
  batch.map.bytes = 2;
  batch.map.padding[0] = 513;
  run_here(batch);
  EXPECT_EQ(get(out, 6), std::vector<uint16_t>(6, 513));
}

INSTANTIATE_TEST_SUITE_P(Devices, PictureBatchOn, testing::ValuesIn(test_devices()),
                         test_device_name);

TEST(PictureBatch, TablesAreUploadedInTheirDType) {
  std::array<double, 256> halves, bytes;
  for (int x = 0; x < 256; ++x) halves[x] = x / 2.0, bytes[x] = 255 - x;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const StoreTable table = make_store_table(dtype, halves, {});
    const StoreTable* const tables[] = {&table, &table};
    const std::vector<uint8_t> elements = element_table(tables);
    ASSERT_EQ(elements.size(), 2 * 256 * size_of(dtype));
    uint32_t bits = 0;
    std::memcpy(&bits, elements.data() + (256 + 3) * size_of(dtype), size_of(dtype));
    // 1.5 in each of them.
    EXPECT_EQ(bits, dtype == DType::kFloat32   ? 0x3fc00000u
                    : dtype == DType::kFloat16 ? 0x3e00u
                                               : 0x3fc0u);
    EXPECT_EQ(element_bits(table, 3), bits);
  }
  EXPECT_EQ(element_bits(make_store_table(DType::kUInt8, bytes, {}), 3), 252u);
}

std::string message_of(const PictureBatch& batch) {
  try {
    check(batch);
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "";
}

TEST(PictureBatch, RejectsUnsupportedInputs) {
  PictureBatch batch{.channels = 5};
  EXPECT_EQ(message_of(batch),
            "HR0862 unsupported input for a batch kernel: an image of a batch has 1 to 4 "
            "channels (got 5)\n  help: deliver it as a tensor, without transforms on the device");
  batch.channels = 3;
  batch.map.bytes = 8;
  EXPECT_NE(message_of(batch).find("an element has 1, 2 or 4 bytes (got 8)"), std::string::npos);
  batch.map.bytes = 4;
  batch.count = -1;
  EXPECT_NE(message_of(batch).find("sizes must not be negative (got -1 images of 0 x 0"),
            std::string::npos);
  batch.count = 0;
  EXPECT_EQ(message_of(batch), "");
}

}  // namespace picture_batch_test
}  // namespace headrace
