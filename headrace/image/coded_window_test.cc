// SPDX-License-Identifier: Apache-2.0
// Recipes over encoded bytes, executed as on a device: the rows that they refer to, processed by
// the kernels' functions on the CPU, must equal the renderer's result. Also tests which recipes
// need more than that, and why.
#include "headrace/image/coded_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "headrace/image/recipe_test_images.h"
#include "headrace/kernels/batch/launch.h"

namespace headrace {
namespace {

using recipe_test::Grid;
using recipe_test::render;

constexpr double kSand[] = {200, 170, 30};

// A file in memory, and a recipe for it.
struct File {
  Buffer bytes;
  Recipe recipe;

  explicit File(int width, int height, bool gray = false, ColorMode color = ColorMode::kRGB)
      : File(made(width, height, gray)) {
    EncodedImage picture = opened();
    picture.color = color;
    recipe = Recipe(picture);
  }
  explicit File(const std::vector<uint8_t>& file) : bytes(file.size()) {
    std::memcpy(bytes.data(), file.data(), file.size());
  }
  EncodedImage opened() const {
    Renderer renderer;
    Result<EncodedImage> picture = renderer.open(bytes.bytes(), {});
    EXPECT_TRUE(picture);
    return picture ? *picture : EncodedImage{};
  }
  static std::vector<uint8_t> made(int width, int height, bool gray) {
    jpeg_test::FileSpec spec{.width = width, .height = height};
    if (gray) spec = jpeg_test::gray(width, height);
    return jpeg_test::encode(spec);
  }
};

// Executes a recipe as a device does. Only the `decoded` part of the stored picture exists, in rows
// laid out like those of ColorPixels: with a margin, at multiples of 8 bytes.
Grid on_device(const CodedWindow& coded, const Size& size) {
  Recipe beginning(coded.picture);
  EXPECT_TRUE(beginning.crop(coded.decoded));
  const Grid there = render(beginning);
  const int margin = coded.decoded.x % 8;
  const int64_t row = (margin + there.width + 7) / 8 * 8, plane = row * there.height;
  std::vector<uint64_t> pictures(size_t(plane * there.channels) / 8, 0xa5a5a5a5a5a5a5a5);
  for (int c = 0; c < there.channels; ++c) {
    for (int y = 0; y < there.height; ++y) {
      for (int x = 0; x < there.width; ++x) {
        reinterpret_cast<uint8_t*>(pictures.data())[c * plane + y * row + margin + x] =
            uint8_t(there.at(c, y, x));
      }
    }
  }
  const ResizeTo to{
      .filter = coded.filter,
      .channels = there.channels,
      .height = size.height,
      .width = size.width,
      .strides = PictureStrides::channels_first(there.channels, size.height, size.width)};
  const ResizeWindow window = coded.resize(margin, row, plane);
  const ResizePlan plan = plan_resize(to, {&window, 1});
  EXPECT_LE(int64_t(plan.made.size() * sizeof plan.made[0]), made_bytes(to, window));
  Buffer upload(size_t(upload_bytes(plan)) + 256), scratch(size_t(scratch_bytes(plan)) + 256),
      batch(size_t(to.strides.picture) + 256);
  const auto aligned = [](Buffer& memory) {
    const auto at = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + ((at + 255) / 256 * 256 - at);
  };
  write(plan, aligned(upload));
  for_each_kernel(plan,
                  {.upload = aligned(upload),
                   .scratch = aligned(scratch),
                   .pictures = reinterpret_cast<const uint8_t*>(pictures.data()),
                   .batch = aligned(batch)},
                  [](const auto& kernel) { run_items(kernel, 0, kernel.items()); });
  const uint8_t* next = aligned(batch);
  return recipe_test::make_grid(there.channels, size.height, size.width,
                                [&](int, int, int) { return *next++; });
}

std::optional<CodedWindow> coded_of(const Recipe& recipe) {
  NotCoded why{};
  return coded_window_of(recipe, why);
}

void expect_as_rendered(const Recipe& recipe, const std::string& what) {
  const std::optional<CodedWindow> coded = coded_of(recipe);
  ASSERT_TRUE(coded) << what;
  ASSERT_EQ(on_device(*coded, recipe.size()), render(recipe)) << what;
}

Window any_part(jpeg_test::Draw& draw, const Size& size) {
  return draw.window(size.width, size.height);
}

// A random subset of: crop, transpose and flip, resize, crop, pad, crop, flip. Returns the names of
// the operations.
std::string edit(Recipe& recipe, Filter filter, jpeg_test::Draw& draw) {
  std::string done = "filter " + std::to_string(int(filter));
  const auto take = [&](const char* name, bool taken) {
    EXPECT_TRUE(taken) << name;
    done += std::string(", ") + name;
  };
  const auto flips = [&] {
    if (draw.below(3) == 0) take("mirrored", recipe.flip_horizontal());
    if (draw.below(3) == 0) take("upside down", recipe.flip_vertical());
  };
  if (draw.below(3) == 0) take("crop", recipe.crop(any_part(draw, recipe.size())));
  if (draw.below(4) == 0) take("transposed", recipe.transpose());
  flips();
  if (draw.below(2)) take("crop", recipe.crop(any_part(draw, recipe.size())));
  if (draw.below(3)) {
    const Size to{1 + draw.below(40), 1 + draw.below(40)};
    take("resize", recipe.resize(to, filter));
  }
  flips();
  if (draw.below(2)) take("crop", recipe.crop(any_part(draw, recipe.size())));
  if (draw.below(2)) {
    take("border", recipe.pad(draw.below(5), draw.below(5), draw.below(5), draw.below(5), kSand));
  }
  flips();
  if (draw.below(2)) take("crop", recipe.crop(any_part(draw, recipe.size())));
  flips();
  return done;
}

TEST(CodedWindow, EveryWindowAndResizeEqualsTheRenderer) {
  jpeg_test::Draw draw(11);
  int alone = 0;  // with nothing but border
  for (int height = 1; height <= 17; ++height) {
    for (int width = 1; width <= 17; ++width) {
      const File file(width, height);
      for (int i = 0; i < 10; ++i) {
        Recipe recipe = file.recipe;
        const std::string done = edit(recipe, Filter(i), draw);
        const std::string size = std::to_string(width) + " x " + std::to_string(height) + ": ";
        ASSERT_NO_FATAL_FAILURE(expect_as_rendered(recipe, size + done));
        alone += coded_of(recipe)->shown.empty();
      }
    }
  }
  EXPECT_GT(alone, 10);
}

TEST(CodedWindow, LargerImagesEqualTheRendererWithEachFilter) {
  jpeg_test::Draw draw(12);
  for (int i = 0; i < 60; ++i) {
    const File file(20 + draw.below(300), 20 + draw.below(300));
    Recipe recipe = file.recipe;
    const std::string done = edit(recipe, Filter(i % 10), draw);
    expect_as_rendered(recipe, done);
  }
}

TEST(CodedWindow, GrayImagesHaveOneChannelOrThree) {
  for (const ColorMode color : {ColorMode::kRGB, ColorMode::kGray, ColorMode::kStored}) {
    for (const bool gray : {false, true}) {
      const File file(33, 21, gray, color);
      Recipe recipe = file.recipe;
      ASSERT_TRUE(recipe.resize({16, 12}, Filter::kLanczos));
      ASSERT_TRUE(recipe.pad(1, 2, 3, 0, kSand));
      expect_as_rendered(recipe, gray ? "gray" : "colors");
    }
  }
}

TEST(CodedWindow, OnlyTheNeededPartIsDecoded) {
  const File file(200, 100);
  Recipe part = file.recipe;
  ASSERT_TRUE(part.crop({30, 20, 50, 40}));
  ASSERT_TRUE(part.flip_horizontal());
  EXPECT_EQ(coded_of(part)->decoded, (Window{30, 20, 50, 40}));
  ASSERT_TRUE(part.pad(4, 4, 4, 4, kSand));
  ASSERT_TRUE(part.crop({0, 0, 20, 20}));  // of the mirrored picture 16 columns and 16 rows
  EXPECT_EQ(coded_of(part)->decoded, (Window{64, 20, 16, 16}));

  // Resize(50), CenterCrop(40): a column of the result depends on fewer than three columns of the
  // picture.
  Recipe center = file.recipe;
  ASSERT_TRUE(center.resize({50, 100}, Filter::kBilinear));
  ASSERT_TRUE(center.crop({30, 5, 40, 40}));
  const Window decoded = coded_of(center)->decoded;
  EXPECT_EQ(decoded, (Window{59, 9, 82, 82}));
  ASSERT_TRUE(center.flip_vertical());
  EXPECT_EQ(coded_of(center)->decoded, decoded) << "a flip after it looks at the same";
}

TEST(CodedWindow, APartWithABorderKeepsItsPositionWhenMirrored) {
  const File file(32, 32);
  Recipe recipe = file.recipe;
  ASSERT_TRUE(recipe.pad(4, 4, 4, 4, kSand));
  ASSERT_TRUE(recipe.crop({1, 6, 32, 32}));  // RandomCrop(32, padding=4)
  const auto coded = coded_of(recipe);
  ASSERT_TRUE(coded);
  EXPECT_EQ(coded->decoded, (Window{0, 2, 29, 30}));
  EXPECT_EQ(coded->at_left, 3);
  EXPECT_EQ(coded->at_top, 0);
  EXPECT_EQ(coded->fill, (std::array<uint8_t, 4>{200, 170, 30, 0}));
  ASSERT_TRUE(recipe.flip_horizontal());
  ASSERT_TRUE(recipe.flip_vertical());
  const auto turned = coded_of(recipe);
  EXPECT_EQ(turned->at_left, 0);
  EXPECT_EQ(turned->at_top, 2);
  expect_as_rendered(recipe, "turned");
}

TEST(CodedWindow, OtherRecipesAreRejectedWithAReason) {
  const File file(24, 16);
  const auto why = [](const Recipe& recipe) -> std::optional<NotCoded> {
    NotCoded reason{};
    if (coded_window_of(recipe, reason)) return std::nullopt;
    return reason;
  };
  EXPECT_EQ(why(file.recipe), std::nullopt);
  EXPECT_EQ(why(Recipe()), NotCoded::kPixels);
  EXPECT_EQ(why(recipe_test::recipe_of(recipe_test::random_grid(3, 9, 9, 1))), NotCoded::kPixels);

  EncodedImage picture = file.opened();
  const auto changed = [&](auto&& change) {
    EncodedImage other = picture;
    change(other);
    return Recipe(other);
  };
  EXPECT_EQ(why(changed([](auto& p) { p.strict = true; })), NotCoded::kForm);
  EXPECT_EQ(why(changed([](auto& p) { p.page = 2; })), NotCoded::kForm);
  EXPECT_EQ(why(changed([](auto& p) { p.color = ColorMode::kRGBA; })), NotCoded::kForm);
  EXPECT_EQ(why(changed([](auto& p) { p.sample = DType::kUInt16; })), NotCoded::kForm);

  Recipe mapped = file.recipe;
  ASSERT_TRUE(mapped.map({MapStep::Kind::kConvert, DType::kFloat32, true, {}, {}}));
  EXPECT_EQ(why(mapped), NotCoded::kColors);
  static constexpr PixelFunction kFirst{[](const PixelStep&, int) { return 1; }, {}, {}};
  Recipe computed = file.recipe;
  ASSERT_TRUE(computed.compute({&kFirst, {}}));
  EXPECT_EQ(why(computed), NotCoded::kColors);

  Recipe erased = file.recipe;
  ASSERT_TRUE(erased.erase({.window = {1, 1, 3, 3}}));
  EXPECT_EQ(why(erased), NotCoded::kRectangles);

  Recipe large = file.recipe;
  ASSERT_TRUE(large.resize({70000, 3}, Filter::kNearest));
  ASSERT_TRUE(large.crop({0, 9, 3, 3}));
  EXPECT_EQ(why(large), NotCoded::kTooLarge);

  Recipe bordered = file.recipe;
  ASSERT_TRUE(bordered.pad(3, 3, 3, 3, kSand));
  EXPECT_EQ(why(bordered), std::nullopt);
  Recipe alone = bordered;
  ASSERT_TRUE(alone.crop({0, 0, 2, 9}));
  EXPECT_EQ(why(alone), std::nullopt);
  ASSERT_TRUE(bordered.resize({12, 12}, Filter::kBilinear));
  EXPECT_EQ(why(bordered), NotCoded::kResizedBorder);
}

}  // namespace
}  // namespace headrace
