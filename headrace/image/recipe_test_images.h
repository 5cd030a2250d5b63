// SPDX-License-Identifier: Apache-2.0
// For tests of recipes, operators and plans: pictures, the results of recipes, and plain loops over
// pixels as the reference for crops, flips and borders.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/image/render.h"
#include "headrace/kernels/store.h"

namespace headrace::recipe_test {

// Pixels as numbers, for any dtype.
struct Grid {
  int channels = 0, height = 0, width = 0;
  DType dtype = DType::kUInt8;
  std::vector<double> values;

  double& at(int c, int y, int x) { return values[(size_t(c) * height + y) * width + x]; }
  double at(int c, int y, int x) const { return values[(size_t(c) * height + y) * width + x]; }
  bool operator==(const Grid&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Grid& grid) {
  return out << grid.channels << " x " << grid.height << " x " << grid.width << " "
             << name_of(grid.dtype);
}

inline Grid make_grid(int channels, int height, int width,
                      const std::function<double(int, int, int)>& value) {
  Grid grid{channels, height, width, DType::kUInt8, {}};
  grid.values.resize(size_t(channels) * height * width);
  for (int c = 0; c < channels; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) grid.at(c, y, x) = value(c, y, x);
    }
  }
  return grid;
}

inline Grid random_grid(int channels, int height, int width, uint32_t seed) {
  std::mt19937 random(seed);
  return make_grid(channels, height, width, [&](int, int, int) { return random() % 256; });
}

inline double load(DType dtype, const uint8_t* from) {
  uint16_t half;
  float single;
  switch (dtype) {
    case DType::kUInt8:
      return *from;
    case DType::kFloat32:
      std::memcpy(&single, from, 4);
      return single;
    default:
      std::memcpy(&half, from, 2);
      return dtype == DType::kFloat16 ? float32_from_float16(half) : float32_from_bfloat16(half);
  }
}

inline Grid grid_of(const Picture& picture) {
  Grid grid{picture.channels, picture.height, picture.width, picture.dtype, {}};
  const size_t item = size_of(picture.dtype);
  for (size_t i = 0; i < picture.pixels.size(); i += item) {
    grid.values.push_back(load(picture.dtype, picture.pixels.data() + i));
  }
  return grid;
}

inline std::shared_ptr<const Picture> picture_of(const Grid& grid) {
  auto picture = std::make_shared<Picture>(grid.channels, grid.height, grid.width, DType::kUInt8);
  std::copy(grid.values.begin(), grid.values.end(), picture->pixels.data());
  return picture;
}

inline Recipe recipe_of(const Grid& grid) { return Recipe(picture_of(grid)); }

inline Grid crop(const Grid& in, const Window& w) {
  return make_grid(in.channels, w.height, w.width,
                   [&](int c, int y, int x) { return in.at(c, w.y + y, w.x + x); });
}
inline Grid mirror_x(const Grid& in) {
  return make_grid(in.channels, in.height, in.width,
                   [&](int c, int y, int x) { return in.at(c, y, in.width - 1 - x); });
}
inline Grid mirror_y(const Grid& in) {
  return make_grid(in.channels, in.height, in.width,
                   [&](int c, int y, int x) { return in.at(c, in.height - 1 - y, x); });
}
inline Grid transposed(const Grid& in) {
  return make_grid(in.channels, in.width, in.height,
                   [&](int c, int y, int x) { return in.at(c, x, y); });
}
inline Grid with_borders(const Grid& in, int left, int top, int right, int bottom,
                         std::span<const double> fill) {
  return make_grid(
      in.channels, in.height + top + bottom, in.width + left + right, [&](int c, int y, int x) {
        const bool inside = y >= top && y < top + in.height && x >= left && x < left + in.width;
        return inside ? in.at(c, y - top, x - left) : fill[c];
      });
}

inline Grid render(Recipe recipe, Renderer& renderer) {
  Picture picture(recipe.channels(), recipe.size().height, recipe.size().width, recipe.dtype());
  RenderTask task;
  task.recipe = &recipe;
  task.target.data = picture.pixels.data();
  renderer.render({&task, 1});
  if (!task.result) {
    ADD_FAILURE() << task.result.error().message();
    return {};
  }
  return grid_of(picture);
}

inline Grid render(const Recipe& recipe) {
  Renderer renderer;
  return render(recipe, renderer);
}

// An operation on a recipe; false if the recipe cannot represent it.
using Step = std::function<bool(Recipe&)>;

// Applies each step alone: materializes after every step.
inline Grid step_by_step(Recipe recipe, std::span<const Step> steps, Renderer& renderer) {
  for (const Step& step : steps) {
    if (Result<void> made = renderer.materialize(recipe); !made) {
      ADD_FAILURE() << made.error().message();
    }
    EXPECT_TRUE(step(recipe)) << "a fresh recipe takes any one step";
  }
  return render(recipe, renderer);
}

// Applies steps like operators do: materializes only if the recipe returns false.
inline Grid fused(Recipe recipe, std::span<const Step> steps, Renderer& renderer) {
  for (const Step& step : steps) {
    if (step(recipe)) continue;
    if (Result<void> made = renderer.materialize(recipe); !made) {
      ADD_FAILURE() << made.error().message();
    }
    EXPECT_TRUE(step(recipe)) << "a fresh recipe takes any one step";
  }
  return render(recipe, renderer);
}

inline void expect_equal_to_step_by_step(const Recipe& recipe, const std::vector<Step>& steps) {
  Renderer renderer;
  EXPECT_EQ(fused(recipe, steps, renderer), step_by_step(recipe, steps, renderer));
}

// A JPEG in memory that is readable past its end, like bytes from sources.
inline Buffer jpeg_bytes(int width, int height, bool subsampled = true) {
  jpeg_test::FileSpec spec{.width = width, .height = height};
  if (!subsampled) spec.sampling = {{1, 1}, {1, 1}, {1, 1}};
  const std::vector<uint8_t> bytes = jpeg_test::encode(spec);
  Buffer buffer(bytes.size());
  std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return buffer;
}

// The same file with an EXIF block that has this orientation (JEITA CP-3451, 4.6.4 A).
inline Buffer with_orientation(const Buffer& jpeg, int orientation) {
  const uint8_t block[] = {0xFF,
                           0xE1,
                           0,
                           34,
                           'E',
                           'x',
                           'i',
                           'f',
                           0,
                           0,
                           'I',
                           'I',
                           42,
                           0,
                           8,
                           0,
                           0,
                           0,
                           1,
                           0,
                           0x12,
                           0x01,
                           3,
                           0,
                           1,
                           0,
                           0,
                           0,
                           uint8_t(orientation),
                           0,
                           0,
                           0,
                           0,
                           0,
                           0,
                           0};
  Buffer out(jpeg.size() + sizeof block);
  std::memcpy(out.data(), jpeg.data(), 2);
  std::memcpy(out.data() + 2, block, sizeof block);
  std::memcpy(out.data() + 2 + sizeof block, jpeg.data() + 2, jpeg.size() - 2);
  return out;
}

}  // namespace headrace::recipe_test
