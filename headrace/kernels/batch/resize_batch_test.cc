// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/resize_batch.h"

#include <algorithm>
#include <cmath>

#include "headrace/base/error.h"
#include "headrace/kernels/batch/batch_test_devices.h"
#include "headrace/kernels/batch/resize_test_reference.h"
#include "headrace/kernels/resample/resample.h"

namespace headrace {
namespace {

// One axis of Pillow's algorithm, implemented independently: output i of a line of samples.
uint8_t resized_sample(Filter filter, const std::vector<uint8_t>& line, int output, int i) {
  const int input = static_cast<int>(line.size());
  if (input == output) return line[i];
  const double scale = double(input) / output;
  if (filter == Filter::kNearest) {
    double position = scale * 0.5;
    for (int k = 0; k < i; ++k) position += scale;
    return line[int(position)];
  }
  const double stretch = std::max(1.0, scale), center = (i + 0.5) * scale;
  const double reach = (filter == Filter::kBicubic ? 2 : 1) * stretch, step = 1.0 / stretch;
  const int low = std::max(0, int(center - reach + 0.5));
  const int high = std::min(input, int(center + reach + 0.5));
  std::vector<double> weights;
  double sum = 0;
  for (int x = low; x < high; ++x) {
    const double d = std::abs((x - center + 0.5) * step);
    double w = d < 1 ? 1 - d : 0;
    if (filter == Filter::kBicubic) {
      w = d < 1 ? (1.5 * d - 2.5) * d * d + 1 : d < 2 ? (((d - 5) * d + 8) * d - 4) * -0.5 : 0;
    }
    weights.push_back(w);
    sum += w;
  }
  int64_t total = 1 << 21;
  for (int x = low; x < high; ++x) {
    const double w = weights[x - low] / sum * (1 << 22);
    total += line[x] * int64_t(w < 0 ? w - 0.5 : w + 0.5);
  }
  return uint8_t(std::clamp<int64_t>(total >> 22, 0, 255));
}

// One channel, row by row.
using Plane = std::vector<std::vector<uint8_t>>;

Plane turned(const Plane& in) {
  Plane out(in[0].size(), std::vector<uint8_t>(in.size()));
  for (size_t y = 0; y < in.size(); ++y) {
    for (size_t x = 0; x < in[0].size(); ++x) out[x][y] = in[y][x];
  }
  return out;
}

Plane widened(Filter filter, const Plane& in, int width) {
  Plane out;
  for (const auto& line : in) {
    out.emplace_back(width);
    for (int x = 0; x < width; ++x) out.back()[x] = resized_sample(filter, line, width, x);
  }
  return out;
}

// Vertically first where Pillow 13 does so: Note [Pass order] in kernels/resample/resample.cc.
Plane resized(Filter filter, const Plane& in, int height, int width) {
  const int shrinks = int(in.size()) - height;
  if (shrinks > 0 && shrinks > 2 * (int(in[0].size()) - width)) {
    return widened(filter, turned(widened(filter, turned(in), height)), width);
  }
  return turned(widened(filter, turned(widened(filter, in, width)), height));
}

Plane part_of(const Plane& whole, const ResizeWindow& window, const ResizeTo& to) {
  Plane out;
  for (int y = 0; y < to.height; ++y) {
    const auto line = whole[window.top + y].begin() + window.left;
    out.emplace_back(line, line + to.width);
  }
  return out;
}

class ResizeBatchOn : public OnTestDevice {
 protected:
  std::vector<uint8_t> resize(const ResizeTo& to, std::vector<uint8_t> pictures,
                              const std::vector<ResizeWindow>& windows) {
    pictures.resize((pictures.size() + 7) / 8 * 8);
    const ResizePlan plan = plan_resize(to, windows);
    std::vector<uint8_t> upload(size_t(upload_bytes(plan)));
    write(plan, upload.data());
    const size_t bytes = size_t(to.strides.picture) * windows.size();
    const ResizeMemory at{.upload = put(upload),
                          .scratch = room<uint8_t>(size_t(scratch_bytes(plan))),
                          .pictures = put(pictures),
                          .batch = room<uint8_t>(bytes)};
    for_each_kernel(plan, at, [&](const auto& kernel) { run_here(kernel); });
    return get(at.batch, bytes);
  }
};

PictureStrides strides_of(bool channels_last, int channels, int height, int width) {
  return channels_last ? PictureStrides::channels_last(channels, height, width)
                       : PictureStrides::channels_first(channels, height, width);
}

TEST_P(ResizeBatchOn, EveryWindowOfEveryImageEqualsTheReference) {
  TestDraws draws(21);
  for (int round = 0; round < 40; ++round) {
    const bool is_last = draws.below(2), to_last = draws.below(2);
    ResizeTo to{.filter = Filter(draws.below(3)), .channels = draws.between(1, 4)};
    to.height = draws.below(6) ? draws.between(1, 40) : 1;
    to.width = draws.below(6) ? draws.between(1, 50) : 1;
    to.strides = strides_of(to_last, to.channels, to.height, to.width);

    std::vector<uint8_t> pictures;  // of different sizes, one after another
    std::vector<ResizeWindow> windows;
    std::vector<Plane> expected;
    for (int i = draws.between(1, 5); i > 0; --i) {
      const int height = draws.between(1, 90), width = draws.between(1, 120);
      const PictureStrides strides = strides_of(is_last, to.channels, height, width);
      const auto samples = draws.values<uint8_t>(strides.picture);
      const int top = draws.below(height), left = draws.below(width);
      ResizeWindow window{.strides = strides,
                          .height = draws.between(1, height - top),
                          .width = draws.between(1, width - left),
                          .flip = draws.below(2) == 1};
      if (draws.below(5) == 0) window.height = std::min(to.height, height - top);  // kept axes
      if (draws.below(5) == 0) window.width = std::min(to.width, width - left);
      const int whole_height = to.height + draws.below(20),
                whole_width = to.width + draws.below(30);
      if (draws.below(2)) {
        window.to_height = whole_height;
        window.to_width = whole_width;
        window.top = draws.below(whole_height - to.height + 1);
        window.left = draws.below(whole_width - to.width + 1);
      }
      window.from = int64_t(pictures.size()) + top * strides.row + left * strides.column;
      for (int c = 0; c < to.channels; ++c) {
        Plane plane(window.height, std::vector<uint8_t>(window.width));
        for (int y = 0; y < window.height; ++y) {
          for (int x = 0; x < window.width; ++x) {
            plane[y][x] = samples[(top + y) * strides.row + (left + x) * strides.column +
                                  c * strides.channel];
          }
        }
        expected.push_back(
            window.to_width
                ? part_of(resized(to.filter, plane, window.to_height, window.to_width), window, to)
                : resized(to.filter, plane, to.height, to.width));
        if (window.flip) {
          for (auto& line : expected.back()) std::reverse(line.begin(), line.end());
        }
      }
      pictures.insert(pictures.end(), samples.begin(), samples.end());
      windows.push_back(window);
    }

    const std::vector<uint8_t> batch = resize(to, pictures, windows);
    for (size_t i = 0; i < windows.size(); ++i) {
      for (int c = 0; c < to.channels; ++c) {
        for (int y = 0; y < to.height; ++y) {
          for (int x = 0; x < to.width; ++x) {
            ASSERT_EQ(batch[i * to.strides.picture + y * to.strides.row + x * to.strides.column +
                            c * to.strides.channel],
                      expected[i * to.channels + c][y][x])
                << windows[i].height << " x " << windows[i].width << " -> " << to.height << " x "
                << to.width << " at " << y << ", " << x << " of channel " << c;
          }
        }
      }
    }
  }
}

std::vector<uint8_t> noise(size_t count, uint32_t seed) {
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes)
    byte = static_cast<uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
  return bytes;
}

struct PillowCase {
  int width, height, top, left, bottom, right, to_width, to_height;
  Filter filter;
  uint64_t hash;  // FNV-1a hash of the output's bytes, channels last
};

// Made by Pillow 13.0.0 from noise of seed width * 1000 + height in RGB: picture.crop((left, top,
// right, bottom)).resize((to_width, to_height), filter).
constexpr PillowCase kPillow[] = {
    {33, 47, 0, 0, 47, 33, 16, 20, Filter::kNearest, 0xcfb1bcd8befadc07},
    {33, 47, 0, 0, 47, 33, 16, 20, Filter::kBilinear, 0x310e47638e89ec89},
    {33, 47, 0, 0, 47, 33, 16, 20, Filter::kBicubic, 0xee9d8d53c8030273},
    {20, 20, 3, 4, 17, 20, 57, 41, Filter::kNearest, 0xcc3d57b8140b352d},
    {20, 20, 3, 4, 17, 20, 57, 41, Filter::kBilinear, 0x5c8848faf68b6f75},
    {20, 20, 3, 4, 17, 20, 57, 41, Filter::kBicubic, 0x20035a5ea23be116},
    {100, 90, 10, 0, 90, 77, 7, 5, Filter::kNearest, 0xbc698d9030faa540},
    {100, 90, 10, 0, 90, 77, 7, 5, Filter::kBilinear, 0x43fe09a490d9d9fb},
    {100, 90, 10, 0, 90, 77, 7, 5, Filter::kBicubic, 0x6d2a9d19b2608a25},
    {64, 120, 5, 1, 119, 61, 60, 32, Filter::kNearest, 0x7d7e970aae24041a},
    {64, 120, 5, 1, 119, 61, 60, 32, Filter::kBilinear, 0x2308f221051952b9},
    {64, 120, 5, 1, 119, 61, 60, 32, Filter::kBicubic, 0xe6d4229e72c5c3f2},
    {64, 120, 0, 0, 120, 64, 32, 100, Filter::kNearest, 0xe54be7b35973013f},
    {64, 120, 0, 0, 120, 64, 32, 100, Filter::kBilinear, 0x56d3277c74b55ba1},
    {64, 120, 0, 0, 120, 64, 32, 100, Filter::kBicubic, 0x2c6489e8089c5ec8},
    {9, 4, 0, 0, 4, 9, 1, 1, Filter::kNearest, 0x69e178194f8dd9f5},
    {9, 4, 0, 0, 4, 9, 1, 1, Filter::kBilinear, 0x77d7841956817532},
    {9, 4, 0, 0, 4, 9, 1, 1, Filter::kBicubic, 0x77d7841956817532},
    {5, 6, 2, 2, 3, 3, 9, 4, Filter::kNearest, 0xe82548c3207b0761},
    {5, 6, 2, 2, 3, 3, 9, 4, Filter::kBilinear, 0xe82548c3207b0761},
    {5, 6, 2, 2, 3, 3, 9, 4, Filter::kBicubic, 0xe82548c3207b0761},
    {90, 40, 0, 10, 40, 80, 20, 40, Filter::kNearest, 0xdeace04b7d594556},
    {90, 40, 0, 10, 40, 80, 20, 40, Filter::kBilinear, 0x5db5bc91ef89ddaa},
    {90, 40, 0, 10, 40, 80, 20, 40, Filter::kBicubic, 0x87b2f58fe1fcef87},
    {40, 90, 9, 0, 80, 40, 40, 11, Filter::kNearest, 0xe3dffc0b93277570},
    {40, 90, 9, 0, 80, 40, 40, 11, Filter::kBilinear, 0xee0d8827fb479d08},
    {40, 90, 9, 0, 80, 40, 40, 11, Filter::kBicubic, 0xb1569efd7d9f223e},
    {48, 48, 6, 7, 40, 41, 32, 32, Filter::kNearest, 0xfd100c63a6afe568},
    {48, 48, 6, 7, 40, 41, 32, 32, Filter::kBilinear, 0x30423911ed76e824},
    {48, 48, 6, 7, 40, 41, 32, 32, Filter::kBicubic, 0x8febd425cc77f52f},
};

TEST_P(ResizeBatchOn, EqualsPillow13) {
  for (const PillowCase& c : kPillow) {
    const ResizeTo to{.filter = c.filter,
                      .channels = 3,
                      .height = c.to_height,
                      .width = c.to_width,
                      .strides = PictureStrides::channels_last(3, c.to_height, c.to_width)};
    const PictureStrides strides = PictureStrides::channels_last(3, c.height, c.width);
    const ResizeWindow window{.from = c.top * strides.row + c.left * strides.column,
                              .strides = strides,
                              .height = c.bottom - c.top,
                              .width = c.right - c.left};
    const auto pictures = noise(strides.picture, c.width * 1000 + c.height);
    uint64_t hash = 0xcbf29ce484222325;
    for (const uint8_t byte : resize(to, pictures, {window})) {
      hash = (hash ^ byte) * 0x100000001b3;
    }
    EXPECT_EQ(hash, c.hash) << c.width << " x " << c.height << " -> " << c.to_width << " x "
                            << c.to_height;
  }
}

TEST_P(ResizeBatchOn, NoImagesMeanNoWork) {
  const ResizeTo to{
      .channels = 3, .height = 4, .width = 4, .strides = PictureStrides::channels_last(3, 4, 4)};
  EXPECT_TRUE(resize(to, {}, {}).empty());
}

// For each filter: small sizes and large ratios, parts of the result, mirrored or not,
// 8-byte-aligned rows and others, planar or interleaved, with and without borders.
TEST_P(ResizeBatchOn, EqualsTheCpuForEachFilterRangeAndLayout) {
  TestDraws draws(22);
  for (int round = 0; round < 400; ++round) {
    const bool to_last = draws.below(4) == 0;
    ResizeTo to{.filter = Filter(round % 10), .channels = draws.between(1, 4)};
    const int most = draws.below(8) ? 17 : 70;
    to.height = draws.between(1, most);
    to.width = draws.below(3) ? draws.between(1, most) : 8 * draws.between(1, 3);
    to.strides = strides_of(to_last, to.channels, to.height, to.width);

    std::vector<uint8_t> pictures;
    std::vector<ResizeWindow> windows;
    for (int i = draws.between(1, 4); i > 0; --i) {
      const int tall = draws.below(8) ? 17 : 300, wide = draws.below(8) ? 17 : 300;
      ResizeWindow window{.height = draws.between(1, tall),
                          .width = draws.between(1, wide),
                          .flip = draws.below(2) == 1,
                          .upside_down = draws.below(2) == 1,
                          .shown_height = to.height,
                          .shown_width = to.width};
      if (draws.below(3) == 0) {
        window.shown_height = draws.between(1, to.height);
        window.shown_width = draws.between(1, to.width);
        window.at_top = draws.below(to.height - window.shown_height + 1);
        window.at_left = draws.below(to.width - window.shown_width + 1);
        for (uint8_t& value : window.fill) value = uint8_t(draws.below(256));
        window.border_alone = draws.below(8) == 0;
      }
      window.to_height = window.shown_height + draws.below(2) * draws.below(20);
      window.to_width = window.shown_width + draws.below(2) * draws.below(20);
      if (draws.below(6) == 0) window.to_height = std::max(window.shown_height, window.height);
      if (draws.below(6) == 0) window.to_width = std::max(window.shown_width, window.width);
      window.top = draws.below(window.to_height - window.shown_height + 1);
      window.left = draws.below(window.to_width - window.shown_width + 1);
      const int margin = draws.below(8);
      if (draws.below(3)) {  // rows of words
        const int64_t row = (window.width + margin + 7) / 8 * 8;
        window.strides = {.row = row, .column = 1, .channel = row * window.height};
        window.from = int64_t((pictures.size() + 7) / 8 * 8) + margin;
        pictures.resize(size_t(window.from - margin + row * window.height * to.channels));
        if (draws.below(2)) {  // from right to left, from the bottom to the top
          window.from += window.width - 1;
          window.strides.column = -1;
        }
        if (draws.below(2)) {
          window.from += (window.height - 1) * row;
          window.strides.row = -row;
        }
      } else {
        window.strides = strides_of(draws.below(2), to.channels, window.height, window.width);
        window.from = int64_t(pictures.size());
        pictures.resize(size_t(window.from + window.strides.picture));
      }
      windows.push_back(window);
    }
    const auto samples = draws.values<uint8_t>(pictures.size());
    const bool extreme = draws.below(3) == 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      pictures[i] = extreme ? (samples[i] & 1 ? 255 : 0) : samples[i];
    }

    const std::vector<uint8_t> batch = resize(to, pictures, windows);
    for (size_t i = 0; i < windows.size(); ++i) {
      for (int c = 0; c < to.channels; ++c) {
        const auto expected = resized_on_cpu(to, windows[i], pictures, c);
        for (int y = 0; y < to.height; ++y) {
          for (int x = 0; x < to.width; ++x) {
            ASSERT_EQ(batch[i * to.strides.picture + y * to.strides.row + x * to.strides.column +
                            c * to.strides.channel],
                      expected[size_t(y) * to.width + x])
                << "filter " << int(to.filter) << ", round " << round << ": " << windows[i].height
                << " x " << windows[i].width << " -> " << windows[i].to_height << " x "
                << windows[i].to_width << " at " << y << ", " << x << " of channel " << c;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ResizeBatchOn, testing::ValuesIn(test_devices()),
                         test_device_name);

TEST(ResizeBatch, WindowsOfOneSizeShareTheirTables) {
  const ResizeTo to{.height = 8, .width = 8, .strides = PictureStrides::channels_last(3, 8, 8)};
  const ResizeWindow window{.height = 30, .width = 20};
  const std::vector<ResizeWindow> one(1, window), many(100, window);
  EXPECT_EQ(plan_resize(to, one).table_words, plan_resize(to, many).table_words);
}

// Only the samples that the window needs are valid.
TEST(ResizeBatch, AnAxisThatKeepsItsSizeReadsOnlyVisiblePixels) {
  for (int filter = 0; filter < 10; ++filter) {
    const ResizeTo to{.filter = Filter(filter),
                      .height = 2,
                      .width = 1,
                      .strides = PictureStrides::channels_first(3, 2, 1)};
    const ResizeWindow window{.strides = {.row = 16, .column = 1, .channel = 128},
                              .height = 8,
                              .width = 14,
                              .to_height = 8,
                              .to_width = 16,
                              .top = 2,
                              .left = 14};
    const ResizePlan plan = plan_resize(to, std::vector<ResizeWindow>(1, window));
    ASSERT_EQ(plan.axes.size(), 2u);
    for (const ResizeAxis& axis : plan.axes) {
      if (axis.form != AxisForm::kAcrossRows) continue;
      EXPECT_EQ(axis.low, 2) << "filter " << filter;
      EXPECT_EQ(axis.samples, 2) << "filter " << filter;
      EXPECT_EQ(axis.taps, 1) << "filter " << filter;
    }
  }
}

std::string message_of(const ResizeTo& to, const std::vector<ResizeWindow>& windows) {
  try {
    (void)plan_resize(to, windows);
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "";
}

TEST(ResizeBatch, RejectsUnsupportedResizes) {
  EXPECT_EQ(message_of({.height = 0, .width = 5}, {}),
            "HR0863 invalid batch resize: a batch cannot be resized to 0 x 5");
  EXPECT_EQ(message_of({.channels = 7, .height = 5, .width = 5}, {}),
            "HR0863 invalid batch resize: an image has 1 to 4 channels (got 7)");
  EXPECT_EQ(message_of({.height = 5, .width = 5}, {{.height = 2, .width = 2}, {.width = 3}}),
            "HR0863 invalid batch resize: window 1 is empty (0 x 3)");
  EXPECT_EQ(
      message_of({.height = 5, .width = 5},
                 {{.height = 2, .width = 2, .to_height = 7, .to_width = 9, .top = 3}}),
      "HR0863 invalid batch resize: the result of window 0 is 7 x 9, 5 x 5 from 3 x 0 is outside "
      "it");
  EXPECT_EQ(
      message_of({.height = 5, .width = 5},
                 {{.height = 2, .width = 2, .shown_height = 4, .shown_width = 3, .at_top = 2}}),
      "HR0863 invalid batch resize: window 0 cannot be placed as 4 x 3 from 2 x 0 in an image of 5 "
      "x 5");
  EXPECT_EQ(message_of({.height = 5, .width = 5}, {{.height = 2, .width = 65537}}),
            "HR0863 invalid batch resize: window 0 is too large (2 x 65537 to 5 x 5)");
}

}  // namespace
}  // namespace headrace
