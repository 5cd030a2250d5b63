// SPDX-License-Identifier: Apache-2.0
// Whole recipes through the kernels: random colors, tones and passes over JPEGs of any size equal
// the renderer's results.
#include "headrace/finish/pixel_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/device/simulated/simulated_device.h"
#include "headrace/fields/pictures.h"
#include "headrace/finish/coded_rows_test_files.h"
#include "headrace/image/torchvision_warps.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/filters/blurs.h"

namespace headrace::coded_rows_test {
namespace {

// Applies the same steps to a recipe deferred to a device and to one whose passes are done
// immediately.
class Both {
 public:
  Both(const File& file, Size size, bool gray, jpeg_test::Draw& draw) : draw_(draw) {
    cpu_ = file.recipe(gray ? ColorMode::kGray : ColorMode::kRGB);
    device_ = cpu_;
    device_.leave_to_device();
    const Window window = draw.window(file.header.width, file.header.height);
    edit([&](Recipe& recipe) { return recipe.crop(window); });
    const int border = draw.below(4) == 0 ? draw.below(5) : 0;
    const Size inner{std::max(1, size.height - border), std::max(1, size.width - border)};
    edit([&](Recipe& recipe) { return recipe.resize(inner, Filter::kBilinear); });
    const double sand[] = {200, 170, 30};
    const auto fill = std::span(sand).first(size_t(cpu_.channels()));
    edit([&](Recipe& recipe) {
      return recipe.pad(size.width - inner.width, size.height - inner.height, 0, 0, fill);
    });
  }

  const Recipe& on_device() const { return device_; }
  const Recipe& on_cpu() const { return cpu_; }
  const std::string& text() const { return text_; }

  void add_steps() {
    const int count = draw_.below(6);
    for (int i = 0; i < count; ++i) {
      add_step();
      if (draw_.below(12) == 0) resize();
    }
  }

 private:
  double factor() { return draw_.below(2000) / 1000.0; }

  void add_step() {
    const Arithmetic arithmetic = draw_.below(2) ? Arithmetic::kTorch : Arithmetic::kPillow;
    const int which = draw_.below(19);
    text_ += " " + std::to_string(which) + (arithmetic == Arithmetic::kTorch ? "t" : "p");
    switch (which) {
      case 0:
        return compute(brightness_step(factor()));
      case 1:
        return compute(saturation_step(factor(), arithmetic));
      case 2:
        return compute(hue_step(factor() / 2 - 0.5, arithmetic));
      case 3:
        return compute(gray_step(device_.channels(), arithmetic));
      case 4:
        return compute(invert_step());
      case 5:
        return compute(posterize_step(draw_.below(9)));
      case 6:
        return compute(solarize_step(draw_.below(257), arithmetic));
      case 7: {
        Draws draws(uint64_t(draw_.below(1000)), 0, 0, 0);
        return compute(permutation_step(draws));
      }
      case 8:
        return edit([](Recipe& recipe) { return recipe.flip_horizontal(); });
      case 9:
        return edit([](Recipe& recipe) { return recipe.flip_vertical(); });
      case 10:
      case 11:
        return pass(contrast_pass(factor(), arithmetic));
      case 12:
        return pass(autocontrast_pass(arithmetic));
      case 13:
        return pass(sharpness_pass(factor(), arithmetic));
      case 14:
      case 15:
        return warp(arithmetic);
      case 16:
        return shift(arithmetic);
      case 17:
        return blur();
      default:
        return pass(equalize_pass());
    }
  }

  void blur() {
    const Size size = device_.size();
    const auto taps = [&](int side) { return 1 + 2 * draw_.below(std::min(side, 12)); };
    pass(gaussian_blur_pass({taps(size.height), taps(size.width)}, 0.1 + 2 * factor()));
  }

  WarpStyle drawn_style(Arithmetic arithmetic) {
    static const double sand[] = {200, 170, 30};
    WarpStyle style{.interpolation = draw_.below(2) ? Filter::kBilinear : Filter::kNearest,
                    .arithmetic = arithmetic};
    const int fills = draw_.below(3);
    if (fills > 0) style.fill = std::span(sand).first(fills == 1 ? 1 : size_t(device_.channels()));
    return style;
  }

  void warp(Arithmetic arithmetic) {
    const WarpStyle style = drawn_style(arithmetic);
    const double angle = draw_.below(3600) / 10.0;
    follow(draw_.below(2) ? rotation_warp(angle, false, {}, device_.size(), style)
                          : affine_warp({.translate = {factor() * 9, factor() * 9},
                                         .scale = 0.5 + factor(),
                                         .shear = {factor() * 20, 0}},
                                        device_.size(), style));
  }
  // Translates by whole pixels.
  void shift(Arithmetic arithmetic) {
    const AffineArguments by{.translate = {draw_.below(9) - 4.0, draw_.below(9) - 4.0}};
    follow(affine_warp(by, device_.size(), drawn_style(arithmetic)));
  }
  // As operators apply a geometry to a field.
  void follow(const Warp& warp) {
    const Geometry geometry = Geometry().warp(warp);
    for (Recipe* recipe : {&device_, &cpu_}) {
      FieldValue value;
      value.kind = FieldKind::kImage;
      value.picture = *recipe;
      ASSERT_TRUE(follow_picture({geometry, recipe->size(), renderer_}, value, {}));
      *recipe = value.picture;
    }
  }

  template <class Edit>
  void edit(Edit&& edit) {
    ASSERT_TRUE(edit(device_));
    ASSERT_TRUE(edit(cpu_));
  }
  void compute(const PixelStep& step) {
    for (Recipe* recipe : {&device_, &cpu_}) {
      ASSERT_TRUE(
          headrace::edit(*recipe, renderer_, [&](Recipe& its) { return its.compute(step); }));
    }
  }
  void pass(const PendingPass& pass) {
    for (Recipe* recipe : {&device_, &cpu_}) {
      if (recipe->left_to_device()) {
        *recipe = pending(*recipe, pass);
        continue;
      }
      ASSERT_TRUE(renderer_.materialize(*recipe));
      *recipe = pass.function->apply(pass, recipe->pixels());
    }
  }

  // Crops and resizes back to the full size: after a pass that runs on the CPU.
  void resize() {
    const Size size = device_.size();
    const Window part = draw_.window(size.width, size.height);
    for (Recipe* recipe : {&device_, &cpu_}) {
      const auto crop = [&](Recipe& its) { return its.crop(part); };
      const auto enlarge = [&](Recipe& its) { return its.resize(size, Filter::kBilinear); };
      ASSERT_TRUE(headrace::edit(*recipe, renderer_, crop));
      ASSERT_TRUE(headrace::edit(*recipe, renderer_, enlarge));
    }
  }

  jpeg_test::Draw& draw_;
  Renderer renderer_;
  Recipe device_, cpu_;
  std::string text_;
};

Bytes rendered(const Recipe& recipe, size_t bytes) {
  Renderer renderer;
  Bytes out(bytes);
  RenderTask task{.recipe = &recipe, .target = {.data = out.data()}, .result = {}};
  renderer.render({&task, 1});
  EXPECT_TRUE(task.result);
  return out;
}

// Batches of equal sizes, from one of several files.
void expect_equal(uint32_t seed, Device& device, int& taken) {
  static const std::vector<File> sources = files();
  jpeg_test::Draw draw(seed);
  const bool gray = draw.below(4) == 0;
  const Shape shape{gray ? 1 : 3, 1 + draw.below(40), 1 + draw.below(40)};
  const Size size{int(shape[1]), int(shape[2])};
  const auto bytes = size_t(element_count(shape));
  const int rows = 1 + draw.below(16);
  Filling filling(rows, shape);
  std::vector<Bytes> expected;
  std::string steps;
  for (int row = 0; row < rows; ++row) {
    Both both(sources[size_t(draw.below(int(sources.size())))], size, gray, draw);
    both.add_steps();
    steps += "\n" + std::to_string(row) + ":" + both.text();
    expected.push_back(rendered(both.on_cpu(), bytes));
    ASSERT_EQ(rendered(both.on_device(), bytes), expected.back()) << seed << steps;
    if (filling.take(row, both.on_device())) {
      ++taken;
      continue;
    }
    uint8_t* const to = filling.coded.pixels(row, filling.slot.data());
    ASSERT_TRUE(to);
    std::ranges::copy(expected.back(), to);
  }
  filling.coded.settle(rows);
  const Outcome made = on_device(filling.coded, filling.slot.data(), rows, bytes, device);
  for (int row = 0; row < rows; ++row) {
    ASSERT_EQ(made.rows[size_t(row)], expected[size_t(row)])
        << "seed " << seed << ", row " << row << " of " << text_of(DType::kUInt8, shape) << steps;
  }
}

TEST(PixelStages, EqualTheRendererOnRandomPipelines) {
  int taken = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    ASSERT_NO_FATAL_FAILURE(expect_equal(seed, *host_device(), taken));
  }
  for (uint32_t seed = 300; seed < 330; ++seed) {
    ASSERT_NO_FATAL_FAILURE(expect_equal(seed, *std::make_shared<SimulatedDevice>(seed), taken));
  }
  EXPECT_GT(taken, 2000);
}

}  // namespace
}  // namespace headrace::coded_rows_test
