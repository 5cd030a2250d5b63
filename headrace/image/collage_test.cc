// SPDX-License-Identifier: Apache-2.0
// Part of a collage, and a warp of it, are the same as when made from the whole rendered canvas.
#include "headrace/image/collage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/image/render.h"
#include "headrace/image/torchvision_warps.h"
#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

class Chance {
 public:
  explicit Chance(uint32_t seed) : random_(seed) {}
  int below(int end) { return static_cast<int>(random_() % static_cast<uint32_t>(end)); }
  double from(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  Window part(Size size) {
    const int x = below(size.width), y = below(size.height);
    return {x, y, 1 + below(size.width - x), 1 + below(size.height - y)};
  }
  std::shared_ptr<const Picture> noise(int channels, Size size) {
    auto out = std::make_shared<Picture>(channels, size.height, size.width, DType::kUInt8);
    std::generate_n(out->pixels.data(), out->pixels.size(), [&] { return uint8_t(random_()); });
    return out;
  }

 private:
  std::mt19937 random_;
};

// Tiles about a center, resized, cropped, mirrored or padded, each somewhere in its quarter.
std::shared_ptr<const Collage> random_collage(Chance& chance, int channels) {
  auto out = std::make_shared<Collage>();
  out->channels = channels;
  out->size = {2 + chance.below(90), 2 + chance.below(200)};
  for (double& fill : out->fill) fill = chance.below(256);
  const Size center{1 + chance.below(out->size.height - 1), 1 + chance.below(out->size.width - 1)};
  for (int quarter = 0; quarter < 4; ++quarter) {
    if (chance.below(5) == 0) continue;
    const bool right = quarter % 2, low = quarter / 2;
    const Size room{low ? out->size.height - center.height : center.height,
                    right ? out->size.width - center.width : center.width};
    Recipe picture(chance.noise(channels, {1 + chance.below(40), 1 + chance.below(40)}));
    if (chance.below(2))
      (void)picture.resize({1 + chance.below(60), 1 + chance.below(90)}, Filter::kBox);
    if (chance.below(3) == 0) (void)picture.flip_horizontal();
    if (chance.below(4) == 0)
      (void)picture.pad(1, 0, 2, 3, std::span(out->fill).first(size_t(channels)));
    EXPECT_TRUE(can_be_tile(picture, out->fill));
    const Size size{std::min(picture.size().height, room.height),
                    std::min(picture.size().width, room.width)};
    EXPECT_TRUE(picture.crop({0, 0, size.width, size.height}));
    out->tiles.push_back({picture,
                          (right ? center.width : 0) + chance.below(room.width - size.width + 1),
                          (low ? center.height : 0) + chance.below(room.height - size.height + 1)});
  }
  return out;
}

// Tile by tile, pixel by pixel.
std::shared_ptr<const Picture> canvas_of(const Collage& collage) {
  Renderer renderer;
  const Size size = collage.size;
  auto out = std::make_shared<Picture>(collage.channels, size.height, size.width, DType::kUInt8);
  for (int c = 0; c < out->channels; ++c) {
    std::fill_n(out->plane(c), out->plane_bytes(), static_cast<uint8_t>(collage.fill[size_t(c)]));
    for (const Collage::Tile& tile : collage.tiles) {
      Recipe picture = tile.picture;
      EXPECT_TRUE(renderer.materialize(picture));
      const Picture& from = *picture.pixels();
      for (int y = 0; y < from.height; ++y) {
        std::copy_n(from.plane(c) + size_t(y) * from.width, from.width,
                    out->plane(c) + size_t(tile.y + y) * out->width + tile.x);
      }
    }
  }
  return out;
}

std::vector<uint8_t> bytes_of(Recipe recipe) {
  Renderer renderer;
  const Result<void> made = renderer.materialize(recipe);
  EXPECT_TRUE(made) << (made ? "" : made.error().what);
  const Buffer& pixels = recipe.pixels()->pixels;
  return {pixels.data(), pixels.data() + pixels.size()};
}

TEST(Collage, AnyPartEqualsThePartOfTheRenderedCanvas) {
  Chance chance(4);
  for (int i = 0; i < 400; ++i) {
    const auto collage = random_collage(chance, 1 + i % 4);
    Recipe part(collage), expected(canvas_of(*collage));
    EXPECT_EQ(part.collage(), collage);
    const int which = chance.below(16);
    for (Recipe* recipe : {&part, &expected}) {
      Chance same(static_cast<uint32_t>(i));
      if (which & 1) (void)recipe->crop(same.part(recipe->size()));
      if (which & 2) (void)recipe->flip_horizontal();
      if (which & 4) (void)recipe->transpose();
      if (which & 8)
        (void)recipe->resize({1 + same.below(50), 1 + same.below(50)}, Filter::kBilinear);
      if (which & 2) (void)recipe->crop(same.part(recipe->size()));
    }
    EXPECT_EQ(bytes_of(part), bytes_of(expected)) << i;
  }
}

TEST(Collage, AWarpReadsTheCanvasPixels) {
  Chance chance(5);
  for (int i = 0; i < 300; ++i) {
    const int channels = 1 + i % 4;
    const auto collage = random_collage(chance, channels);
    const std::shared_ptr<const Picture> canvas = canvas_of(*collage);
    const std::vector<double> fill(chance.below(2) ? size_t(channels) : 0, chance.below(256));
    for (const Filter filter : {Filter::kNearest, Filter::kBilinear, Filter::kBicubic}) {
      for (const Arithmetic arithmetic : {Arithmetic::kTorch, Arithmetic::kPillow}) {
        if (filter == Filter::kBicubic && arithmetic == Arithmetic::kTorch) continue;
        const WarpStyle style{.interpolation = filter, .arithmetic = arithmetic, .fill = fill};
        AffineArguments by{.scale = chance.from(0.2, 4)};
        by.translate = {double(chance.below(40) - 20), double(chance.below(40) - 20)};
        if (i % 3) by.angle = chance.from(-180, 180);
        if (i % 5 == 0) by.shear = {chance.from(-60, 60), chance.from(-20, 20)};
        const Warp warp = affine_warp(by, collage->size, style);
        if (warp.quarter_turns) continue;
        const Window part = chance.part(warp.to);
        for (const SimdLevel level : available_levels()) {
          set_simd_level(level);
          Recipe made(std::make_shared<const WarpedPicture>(nullptr, warp, false, collage));
          Recipe expected(std::make_shared<const WarpedPicture>(canvas, warp));
          EXPECT_TRUE(made.crop(part));
          (void)expected.crop(part);
          EXPECT_EQ(bytes_of(made), bytes_of(expected)) << i;
        }
        set_simd_level(available_levels().back());
      }
    }
  }
}

TEST(Collage, UnsupportedTilesAreReportedBeforeRendering) {
  Chance chance(6);
  Recipe noisy(chance.noise(1, {9, 9}));
  (void)noisy.erase({.window = {2, 2, 3, 3}, .noise = 1});
  EXPECT_FALSE(can_be_tile(noisy, {7}));
  Recipe bordered(chance.noise(1, {9, 9}));
  const double black[] = {0};
  (void)bordered.pad(1, 1, 1, 1, black);
  EXPECT_FALSE(can_be_tile(bordered, {7})) << "another border than the canvas has";
  EXPECT_TRUE(can_be_tile(bordered, {0}));
}

// An encoded picture that no decoder supports.
Recipe broken() {
  static const std::vector<uint8_t> bytes(64);
  EncodedImage picture{.bytes = bytes, .codec = Registry<CodecRecord>::find("jpeg"), .header = {}};
  picture.header.width = picture.header.height = 16;
  picture.header.channels = 3;
  return Recipe(picture);
}

TEST(Collage, OnlyVisiblePartsAreDecoded) {
  Chance chance(7);
  auto collage = std::make_shared<Collage>();
  collage->channels = 3;
  collage->size = {32, 64};
  collage->tiles.push_back({Recipe(chance.noise(3, {16, 16})), 0, 0});
  collage->tiles.push_back({broken(), 48, 16});
  const std::shared_ptr<const Collage> shared = collage;
  Renderer renderer;
  Recipe beside(shared), onto(shared);
  (void)beside.crop({0, 0, 48, 32});
  (void)onto.crop({0, 0, 49, 32});
  EXPECT_TRUE(renderer.materialize(beside));
  EXPECT_FALSE(renderer.materialize(onto)) << "an error of a tile is the image's";
  const WarpStyle style{.interpolation = Filter::kBilinear};
  for (const double move : {0.5, 40.5}) {  // to the right, outside of the visible part
    const Warp warp = affine_warp({.translate = {move, 0}}, collage->size, style);
    Recipe left(std::make_shared<const WarpedPicture>(nullptr, warp, false, shared));
    (void)left.crop({0, 0, 40, 32});
    EXPECT_EQ(renderer.materialize(left).has_value(), move > 1) << move;
  }
}

}  // namespace
}  // namespace headrace
