// SPDX-License-Identifier: Apache-2.0
// Compares WarpPictures with all kinds of warps of the renderer, in parts of the result;
// tests/test_warps.py compares the renderer with the libraries.
#include "headrace/image/device_warp.h"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "headrace/image/render.h"
#include "headrace/image/torchvision_warps.h"
#include "headrace/kernels/batch/batch_test_passes.h"

namespace headrace {
namespace {

class WarpPicturesOn : public OnTestDevice {};

std::vector<uint8_t> rendered(const WarpedPicture& picture, const Window& part) {
  Recipe recipe(std::make_shared<const WarpedPicture>(picture));
  EXPECT_TRUE(recipe.crop(part));
  Renderer renderer;
  EXPECT_TRUE(renderer.materialize(recipe));
  const Picture& made = *recipe.pixels();
  return {made.pixels.data(), made.pixels.data() + made.pixels.size()};
}

// A warp that the device supports; all kinds of angles and shears, including axis-aligned ones.
Warp drawn_warp(TestDraws& draws, Size size, const WarpStyle& style) {
  const auto number = [&](int low, int high) { return draws.between(low * 16, high * 16) / 16.0; };
  const auto center = [&]() -> std::optional<std::array<double, 2>> {
    if (draws.below(2)) return {};
    return std::array<double, 2>{number(-9, 40), number(-9, 40)};
  };
  switch (draws.below(6)) {
    case 0:
      return rotation_warp(number(-400, 400), draws.below(3) == 0, center(), size, style);
    case 1:  // axes that stay axes
      return affine_warp(
          {.translate = {number(-30, 30), number(-30, 30)}, .scale = 0.25 + draws.below(40) / 16.0},
          size, style);
    case 2: {
      const auto end = [&](int side) { return draws.between(0, std::max(side / 3, 1)); };
      const int right = size.width - 1, bottom = size.height - 1;
      const Corners ends{{{end(right), end(bottom)},
                          {right - end(right), end(bottom)},
                          {right - end(right), bottom - end(bottom)},
                          {end(right), bottom - end(bottom)}}};
      if (const auto warp = perspective_warp(ends, size, style)) return *warp;
      [[fallthrough]];
    }
    default:
      return affine_warp({.angle = number(-180, 180),
                          .translate = {number(-20, 20), number(-20, 20)},
                          .scale = 0.1 + draws.below(40) / 16.0,
                          .shear = {number(-60, 60), number(-60, 60)},
                          .center = center()},
                         size, style);
  }
}

TEST_P(WarpPicturesOn, WarpsOfAllKindsEqualTheRenderers) {
  TestDraws draws(8);
  PassPictures pictures(draws);
  PassPlan<WarpJob> plan;
  std::vector<int32_t> tables;
  std::vector<std::vector<uint8_t>> expected;
  const std::vector<double> fills{0, 255, 7, 130.5};
  int lookups[4] = {}, drawn = 0;
  while (expected.size() < 300) {
    ASSERT_LT(++drawn, 900);
    const Size size{draws.between(1, 40), draws.between(1, 40)};
    const bool is_mask = draws.below(5) == 0;
    WarpStyle style{.interpolation = draws.below(2) ? Filter::kBilinear : Filter::kNearest,
                    .arithmetic = draws.below(2) ? Arithmetic::kTorch : Arithmetic::kPillow,
                    .mask_fill = 3};
    const int fill = draws.below(3);
    if (fill) style.fill = std::span(fills).subspan(size_t(draws.below(3)), 1);
    const Warp warp = drawn_warp(draws, size, style);
    if (!runs_on_device(warp, is_mask, 1)) continue;
    const Size of = warp.to;
    Window part{draws.below(of.width), draws.below(of.height), 0, 0};
    if (draws.below(2)) part = {};
    part.width = draws.between(1, of.width - part.x);
    part.height = draws.between(1, of.height - part.y);
    const PassPicture& picture = pictures.add(size.height, size.width, part.height, part.width);
    const int channels = picture.planes.channels;
    Warp filled = warp;
    if (fill == 2 && channels <= 4) filled.style.fill = std::span(fills).first(size_t(channels));
    WarpJob job = device_warp_of(filled, is_mask, channels, size, part, tables);
    job.planes = picture.planes;
    plan.add(job);
    ++lookups[int(job.lookup)];
    auto source = std::make_shared<Picture>(channels, size.height, size.width, DType::kUInt8);
    std::ranges::copy(picture.samples, source->pixels.data());
    expected.push_back(rendered({.from = source, .warp = filled, .is_mask = is_mask}, part));
  }
  for (const int count : lookups) EXPECT_GT(count, 15);
  const uint8_t* const from = put(pictures.memory());
  uint8_t* const to = room<uint8_t>(pictures.to_bytes());
  const uint8_t* const told = put(written(plan));
  run_here(WarpPictures{.work = plan.jobs(told), .tables = put(tables), .from = from, .to = to});
  pictures.expect_made(get(to, pictures.to_bytes()), expected);
}

TEST_P(WarpPicturesOn, NoImagesMeanNoWork) {
  EXPECT_EQ(WarpPictures{}.items(), 0);
  run_here(WarpPictures{});
}

TEST(DeviceWarp, PillowsAccumulatedSumsStayOnTheCpu) {
  const WarpStyle pillow{.arithmetic = Arithmetic::kPillow};
  const Size size{30, 40};
  EXPECT_TRUE(runs_on_device(affine_warp({.angle = 20}, size, pillow), false, 3));
  EXPECT_FALSE(runs_on_device(affine_warp({.angle = 20, .scale = 1e-4}, size, pillow), false, 3));
  WarpStyle cubic = pillow;
  cubic.interpolation = Filter::kBicubic;
  EXPECT_FALSE(runs_on_device(affine_warp({.angle = 20}, size, cubic), false, 3));
  EXPECT_TRUE(runs_on_device(affine_warp({.angle = 20}, size, cubic), true, 1));  // a mask
  EXPECT_FALSE(runs_on_device(affine_warp({.angle = 20}, size, pillow), false, 5));
}

INSTANTIATE_TEST_SUITE_P(Devices, WarpPicturesOn, testing::ValuesIn(test_devices()),
                         test_device_name);

}  // namespace
}  // namespace headrace
