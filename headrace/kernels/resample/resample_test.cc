// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/resample/resample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <span>

#include "headrace/kernels/level_test_names.h"
#include "headrace/kernels/resample/resample_wide.h"

namespace headrace {
namespace {

// The pictures that the expected values below were made from.
std::vector<uint8_t> noise(size_t count, uint32_t seed) {
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes)
    byte = static_cast<uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
  return bytes;
}

uint64_t fnv1a(const void* data, size_t count) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < count; ++i) {
    hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3;
  }
  return hash;
}

struct Plane {
  int width = 0, height = 0;
  std::vector<uint8_t> samples;
  uint8_t at(int x, int y) const { return samples[size_t(y) * width + x]; }
  bool operator==(const Plane&) const = default;
};

Plane make_plane(int width, int height, uint32_t seed) {
  return {width, height, noise(size_t(width) * height, seed)};
}

// One axis as specified by a caller.
struct Axis {
  Filter filter = Filter::kBilinear;
  int input = 0, output = 0, begin = 0, end = 0;
  bool flip_input = false, flip_output = false;
};

// Rows in the kernels' format: padded, with a pattern after them that must not matter.
Buffer padded_rows(const Plane& plane, int low, int high, int stride) {
  Buffer rows(size_t(plane.height) * stride);
  std::fill_n(rows.data(), rows.size() + Buffer::kPadding, uint8_t{0xa5});
  for (int y = 0; y < plane.height; ++y) {
    std::memcpy(rows.data() + size_t(y) * stride,
                plane.samples.data() + size_t(y) * plane.width + low, high - low);
  }
  return rows;
}

Plane horizontally(const Plane& in, const Axis& axis, int channels = 1) {
  ResampleAxis table;
  table.make(axis.filter, axis.input, axis.output, axis.begin, axis.end, axis.flip_input,
             axis.flip_output);
  const int needed = table.high() - table.low(), stride = (needed + 63) / 64 * 64;
  const Buffer rows = padded_rows(in, table.low(), table.high(), stride);
  const ptrdiff_t plane = (table.padded_outputs() + 63) / 64 * 64;
  Buffer out(channels * plane);
  Plane result{table.outputs(), in.height, {}};
  for (int y = 0; y < in.height; ++y) {
    const uint8_t* const row = rows.data() + size_t(y) * stride;
    const uint8_t* const planes[] = {row, row, row, row};
    table.horizontal(planes, channels, out.data(), plane);
    for (int c = 1; c < channels; ++c) {
      EXPECT_EQ(std::memcmp(out.data(), out.data() + c * plane, table.outputs()), 0);
    }
    result.samples.insert(result.samples.end(), out.data(), out.data() + table.outputs());
  }
  return result;
}

Plane vertically(const Plane& in, const Axis& axis) {
  ResampleAxis table;
  table.make(axis.filter, axis.input, axis.output, axis.begin, axis.end, axis.flip_input,
             axis.flip_output);
  const int stride = (in.width + 63) / 64 * 64;
  const Buffer rows = padded_rows(in, 0, in.width, stride);
  Buffer out(stride);
  Plane result{in.width, table.outputs(), {}};
  std::vector<const uint8_t*> taps(table.row_pointers());
  for (int i = 0; i < table.outputs(); ++i) {
    for (size_t t = 0; t < taps.size(); ++t) {
      const int row = table.low() + table.first(i) + std::min<int>(int(t), table.count(i) - 1);
      taps[t] = rows.data() + size_t(row) * stride;
    }
    table.vertical(i, taps.data(), stride, out.data());
    result.samples.insert(result.samples.end(), out.data(), out.data() + in.width);
  }
  return result;
}

// Pillow's algorithm, implemented independently: one sample at a time.
uint8_t reference(const Axis& axis, int i, const std::function<int(int)>& sample) {
  if (axis.flip_output)
    i = axis.end - 1 - i;
  else
    i += axis.begin;
  const auto at = [&](int x) { return sample(axis.flip_input ? axis.input - 1 - x : x); };
  const double scale = double(axis.input) / axis.output;
  if (axis.filter == Filter::kNearest) {
    double position = scale * 0.5;
    for (int k = 0; k < i; ++k) position += scale;
    return uint8_t(at(int(position)));
  }
  const double stretch = scale < 1 ? 1 : scale;
  const double support = (axis.filter == Filter::kBicubic ? 2 : 1) * stretch;
  const double center = (i + 0.5) * scale, step = 1.0 / stretch;
  const int low = std::max(0, int(center - support + 0.5));
  const int high = std::min(axis.input, int(center + support + 0.5));
  std::vector<double> weights;
  double sum = 0;
  for (int x = low; x < high; ++x) {
    const double d = std::abs((x - center + 0.5) * step);
    double w = 0;
    if (axis.filter == Filter::kBilinear)
      w = d < 1 ? 1 - d : 0;
    else if (d < 1)
      w = (1.5 * d - 2.5) * d * d + 1;
    else if (d < 2)
      w = (((d - 5) * d + 8) * d - 4) * -0.5;
    weights.push_back(w);
    sum += w;
  }
  int64_t total = 1 << 21;
  for (int x = low; x < high; ++x) {
    const double w = weights[x - low] / sum * (1 << 22);
    total += at(x) * int64_t(w < 0 ? w - 0.5 : w + 0.5);
  }
  return uint8_t(std::clamp<int64_t>(total >> 22, 0, 255));
}

class Resample : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

struct PillowCase {
  int width, height, to_width, to_height;
  Filter filter;
  uint64_t hash;  // FNV-1a hash of the output
};

// Made by Pillow 13.0.0: Image.fromarray(noise).resize((to_width, to_height), filter).
constexpr PillowCase kPillow[] = {
    {33, 47, 16, 20, Filter::kNearest, 0x5dd36fa5ecc7a22c},
    {33, 47, 16, 20, Filter::kBilinear, 0x80005e66c2d7e432},
    {33, 47, 16, 20, Filter::kBicubic, 0x5c2263eb1e378d31},
    {20, 20, 57, 41, Filter::kNearest, 0x1ddf379548ef1d51},
    {20, 20, 57, 41, Filter::kBilinear, 0x917894a7784352c5},
    {20, 20, 57, 41, Filter::kBicubic, 0x97de36127dfb7dcb},
    {100, 90, 7, 5, Filter::kNearest, 0x12d30754f56b6690},
    {100, 90, 7, 5, Filter::kBilinear, 0x632c97ac58fcbc61},
    {100, 90, 7, 5, Filter::kBicubic, 0xe6d9e24d8c2bc4ee},
    {7, 5, 100, 90, Filter::kNearest, 0x658bdc415fafd9e9},
    {7, 5, 100, 90, Filter::kBilinear, 0x96ce7b9740bbb5b1},
    {7, 5, 100, 90, Filter::kBicubic, 0x648367b773e67ef8},
    {64, 200, 60, 32, Filter::kNearest, 0x515c0be8226b69d5},
    {64, 200, 60, 32, Filter::kBilinear, 0xe177f80e64ed9fed},
    {64, 200, 60, 32, Filter::kBicubic, 0xa131894eab77535f},
    {64, 200, 32, 100, Filter::kNearest, 0x81a406b6f0d39891},
    {64, 200, 32, 100, Filter::kBilinear, 0xf6d2304c1a977ad0},
    {64, 200, 32, 100, Filter::kBicubic, 0x64c2fcf5d2987906},
    {1, 1, 9, 4, Filter::kNearest, 0xc42cd17cd7bd8531},
    {1, 1, 9, 4, Filter::kBilinear, 0xc42cd17cd7bd8531},
    {1, 1, 9, 4, Filter::kBicubic, 0xc42cd17cd7bd8531},
    {9, 4, 1, 1, Filter::kNearest, 0xaf63a14c8601884b},
    {9, 4, 1, 1, Filter::kBilinear, 0xaf63ed4c8602096f},
    {9, 4, 1, 1, Filter::kBicubic, 0xaf63ec4c860207bc},
    {300, 40, 20, 40, Filter::kNearest, 0x81258d8c1f816b40},
    {300, 40, 20, 40, Filter::kBilinear, 0x0f43666b64ac32c1},
    {300, 40, 20, 40, Filter::kBicubic, 0x42d2df95b6f43ea2},
    {40, 300, 40, 11, Filter::kNearest, 0x6c2dd67157af75bd},
    {40, 300, 40, 11, Filter::kBilinear, 0xa00f26a58fc207e1},
    {40, 300, 40, 11, Filter::kBicubic, 0xcdbf2ed5ed9f4c92},
    {13, 61, 29, 17, Filter::kNearest, 0x659c22f8f7e0f9a4},
    {13, 61, 29, 17, Filter::kBilinear, 0xaa3007477d7dd84d},
    {13, 61, 29, 17, Filter::kBicubic, 0x2004dd5d6dfc0879},
    {500, 30, 31, 45, Filter::kNearest, 0xdf8d6a728a9af16b},
    {500, 30, 31, 45, Filter::kBilinear, 0x1bb65a031ca88397},
    {500, 30, 31, 45, Filter::kBicubic, 0xb06a88af7adcc6b9},
};

TEST_P(Resample, EqualsPillow13) {
  for (const PillowCase& c : kPillow) {
    Plane plane = make_plane(c.width, c.height, c.width * 1000 + c.height);
    const Axis x{c.filter, c.width, c.to_width, 0, c.to_width};
    const Axis y{c.filter, c.height, c.to_height, 0, c.to_height};
    const bool wide = c.width != c.to_width, high = c.height != c.to_height;
    const bool vertical = vertical_first(c.filter, c.width, c.height, c.to_width, c.to_height);
    if (high && vertical) plane = vertically(plane, y);
    if (wide) plane = horizontally(plane, x);
    if (high && !vertical) plane = vertically(plane, y);
    EXPECT_EQ(fnv1a(plane.samples.data(), plane.samples.size()), c.hash)
        << c.width << "x" << c.height << " -> " << c.to_width << "x" << c.to_height << " filter "
        << int(c.filter);
  }
}

Axis random_axis(std::mt19937& engine) {
  const auto below = [&](int n) { return int(engine() % unsigned(n)); };
  Axis axis{Filter(below(3))};
  axis.input = 1 + below(below(4) ? 150 : 3000);
  do axis.output = 1 + below(below(4) ? 150 : 600);
  while (axis.output == axis.input);
  axis.begin = below(3) ? 0 : below(axis.output);
  axis.end = below(3) ? axis.output : axis.begin + 1 + below(axis.output - axis.begin);
  axis.flip_input = below(2);
  axis.flip_output = below(2);
  return axis;
}

TEST_P(Resample, BothPassesEqualTheReferenceOverRandomSizesRangesAndFlips) {
  std::mt19937 engine(7);
  for (int round = 0; round < 300; ++round) {
    const Axis axis = random_axis(engine);
    const int lines = 2, channels = 1 + int(engine() % 4);
    const Plane wide = make_plane(axis.input, lines, round);
    const Plane high = make_plane(lines, axis.input, round);
    const Plane across = horizontally(wide, axis, channels), down = vertically(high, axis);
    ASSERT_EQ(across.width, axis.end - axis.begin);
    ASSERT_EQ(down.height, axis.end - axis.begin);
    for (int line = 0; line < lines; ++line) {
      for (int i = 0; i < axis.end - axis.begin; ++i) {
        ASSERT_EQ(across.at(i, line), reference(axis, i, [&](int x) { return wide.at(x, line); }))
            << axis.input << " -> " << axis.output << ", output " << i;
        ASSERT_EQ(down.at(line, i), reference(axis, i, [&](int y) { return high.at(line, y); }))
            << axis.input << " -> " << axis.output << ", output " << i;
      }
    }
  }
}

TEST_P(Resample, ExtremeValuesSaturate) {
  const Axis axis{Filter::kBicubic, 40, 97, 0, 97};
  Plane plane{40, 1, std::vector<uint8_t>(40)};
  for (int x = 0; x < 40; ++x) plane.samples[x] = x / 5 % 2 ? 255 : 0;
  const Plane out = horizontally(plane, axis);
  for (int i = 0; i < 97; ++i) {
    ASSERT_EQ(out.at(i, 0), reference(axis, i, [&](int x) { return plane.at(x, 0); }));
  }
  EXPECT_NE(std::ranges::find(out.samples, 255), out.samples.end());
}

TEST_P(Resample, NeedsOnlyTheInputsUnderItsRange) {
  ResampleAxis axis;
  axis.make(Filter::kBilinear, 1000, 100, 40, 60, false, false);
  EXPECT_EQ(axis.low(), 395);   // (40 + 0.5) * 10 - 10, rounded
  EXPECT_EQ(axis.high(), 605);  // (59 + 0.5) * 10 + 10, rounded
  axis.make(Filter::kBilinear, 1000, 100, 40, 60, true, false);
  EXPECT_EQ(axis.low(), 395);
  EXPECT_EQ(axis.high(), 605);
  EXPECT_TRUE(axis.descending());
}

TEST_P(Resample, AnAxisOfUnchangedSizeIsCopied) {
  ResampleAxis axis;
  axis.make(Filter::kBicubic, 50, 50, 10, 30, true, false);
  EXPECT_TRUE(axis.copies());
  EXPECT_TRUE(axis.mirrored());
  EXPECT_EQ(axis.low(), 20);
  EXPECT_EQ(axis.high(), 40);
  axis.make(Filter::kBicubic, 50, 50, 10, 30, true, true);
  EXPECT_FALSE(axis.mirrored());
}

TEST_P(Resample, WeightsOfOneSignStayFarBelowTwo) {
  // Assumptions of both vector levels. The extremes occur at edges that clip the filter.
  for (const Filter filter :
       {Filter::kBilinear, Filter::kBicubic, Filter::kBox, Filter::kHamming, Filter::kLanczos,
        Filter::kBilinearNoAntialias, Filter::kBicubicNoAntialias}) {
    for (int input = 1; input <= 60; ++input) {
      for (int output = 1; output <= 60; ++output) {
        if (output == input) continue;
        ResampleAxis axis;
        axis.make(filter, input, output, 0, output, false, false);
        for (int i = 0; i < output; ++i) {
          double above = 0, below = 0;
          for (int t = 0; t < axis.count(i); ++t) {
            (axis.weight(i, t) > 0 ? above : below) += axis.weight(i, t) / 4194304.0;
          }
          ASSERT_LT(std::max(above, -below), 1.5) << input << " -> " << output;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Resample, testing::ValuesIn(available_levels()), level_name);

// Made by Pillow 13.0.0 on mode "F", from (noise - 100) / 37 in float32.
constexpr PillowCase kPillowFloats[] = {
    {33, 47, 16, 20, Filter::kNearest, 0xaf1ee0165776fd3f},
    {33, 47, 16, 20, Filter::kBilinear, 0x220b2acbf2c835a0},
    {33, 47, 16, 20, Filter::kBicubic, 0x4f841950181b69e0},
    {20, 20, 57, 41, Filter::kNearest, 0x5a54557cc964776b},
    {20, 20, 57, 41, Filter::kBilinear, 0x1238e2926fadf7ed},
    {20, 20, 57, 41, Filter::kBicubic, 0x96910537fccd3b95},
    {64, 200, 60, 32, Filter::kNearest, 0xecafc8a13eced7d3},
    {64, 200, 60, 32, Filter::kBilinear, 0xc428e58f197767b4},
    {64, 200, 60, 32, Filter::kBicubic, 0x4fb3edbb0386d478},
    {40, 300, 40, 11, Filter::kNearest, 0x22a5992eeeabbaa0},
    {40, 300, 40, 11, Filter::kBilinear, 0x4258b8624bb0e17a},
    {40, 300, 40, 11, Filter::kBicubic, 0xa9d5031adbb5e396},
    {7, 5, 100, 90, Filter::kNearest, 0x9be135adf167de85},
    {7, 5, 100, 90, Filter::kBilinear, 0x55b632aa616df660},
    {7, 5, 100, 90, Filter::kBicubic, 0x27cfb81ed4704868},
};

// The same on mode "I;16", from 100 * noise + 10000.
constexpr PillowCase kPillowWords[] = {
    {33, 47, 16, 20, Filter::kBilinear, 0x78aba551eacc183a},
    {33, 47, 16, 20, Filter::kBicubic, 0x75d5a3aff83d884b},
    {33, 47, 16, 20, Filter::kHamming, 0x0bd9b5dbd51cd3dc},
    {20, 20, 57, 41, Filter::kBilinear, 0x2896f50b3753c5b1},
    {20, 20, 57, 41, Filter::kBicubic, 0x47f1e7242a5218e7},
    {20, 20, 57, 41, Filter::kHamming, 0x7033fa88808c827d},
    {64, 200, 60, 32, Filter::kBilinear, 0x5e7614970192f8bb},
    {64, 200, 60, 32, Filter::kBicubic, 0xa31b65e906841963},
    {64, 200, 60, 32, Filter::kHamming, 0x9550497a1c3dff20},
    {40, 300, 40, 11, Filter::kBilinear, 0x664e2e063aeb4f54},
    {40, 300, 40, 11, Filter::kBicubic, 0x0b44969311fe9dab},
    {40, 300, 40, 11, Filter::kHamming, 0x8c1df9ab1fabcb12},
    {7, 5, 100, 90, Filter::kBilinear, 0x877d8c1793a91bec},
    {7, 5, 100, 90, Filter::kBicubic, 0xa71338015d05af4b},
    {7, 5, 100, 90, Filter::kHamming, 0x7f1c6271717917b6},
};

// The result for planes of noise mapped by `value`, at every SIMD level.
template <class Value>
void expect_wide(std::span<const PillowCase> cases, WideSample sample, const Value& value) {
  for (const SimdLevel level : available_levels()) {
    set_simd_level(level);
    for (const PillowCase& c : cases) {
      WidePlane plane(c.width, c.height);
      const Plane bytes = make_plane(c.width, c.height, c.width * 1000 + c.height);
      std::ranges::transform(bytes.samples, plane.samples.begin(), value);
      WidePlane between, out(c.to_width, c.to_height);
      resample(plane, c.filter, sample, between, out);
      EXPECT_EQ(fnv1a(out.samples.data(), size_t(c.to_width) * c.to_height * sizeof(float)), c.hash)
          << name_of(level) << " " << c.width << "x" << c.height << " -> " << c.to_width << "x"
          << c.to_height << " filter " << int(c.filter);
    }
  }
  set_simd_level(available_levels().back());
}

TEST(ResampleWide, EqualsPillow13) {
  expect_wide(kPillowFloats, WideSample::kFloat32,
              [](uint8_t noise) { return (float(noise) - 100.0f) / 37.0f; });
  expect_wide(kPillowWords, WideSample::kUInt16,
              [](uint8_t noise) { return float(noise) * 100 + 10000; });
}

TEST(PassOrder, EqualsPillow13s) {
  EXPECT_FALSE(vertical_first(Filter::kBilinear, 100, 100, 50, 50));
  EXPECT_TRUE(vertical_first(Filter::kBilinear, 100, 301, 50, 200));   // 101 > 2 * 50
  EXPECT_FALSE(vertical_first(Filter::kBilinear, 100, 300, 50, 200));  // 100 = 2 * 50
  EXPECT_TRUE(vertical_first(Filter::kBilinear, 50, 101, 100, 100));   // the width grows
  EXPECT_FALSE(vertical_first(Filter::kBilinear, 50, 100, 100, 100));
  EXPECT_FALSE(vertical_first(Filter::kBilinear, 10, 20, 400, 30));  // the height does not shrink
}

}  // namespace
}  // namespace headrace
