// SPDX-License-Identifier: Apache-2.0
// Rendering after a decoder: differences between decoders (layout and size of row blocks, lanes,
// errors) must not change pixels. The decoder here generates its pictures, so every pixel is known;
// recipe_test.cc tests the rules of recipes.
#include "headrace/image/render.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "headrace/base/allocations_test_hook.h"
#include "headrace/base/registry.h"
#include "headrace/image/recipe_test_images.h"
#include "headrace/image/render_task.h"
#include "headrace/kernels/dispatch.h"

namespace {
thread_local int64_t until_refusal = -1;  // allocations that are still granted; negative: all
}

void headrace::before_allocation() {
  if (until_refusal >= 0 && until_refusal-- == 0) throw std::bad_alloc();
}

namespace headrace {
namespace {

// How the test codec delivers rows.
enum class Layout : uint8_t { kInterleaved, kPlanar, kSpread };

const ErrorCode kBroken{"HR9901", ErrorKind::kData, "made up", "A made-up error."};

uint8_t pixel(int x, int y, int channel) {
  const uint32_t mixed = uint32_t(x * 2654435761u) ^ uint32_t(y * 40503u) ^ uint32_t(channel * 977);
  return static_cast<uint8_t>((mixed * 2246822519u) >> 24);
}

// A file: "HRTEST", then width, height (16 bits each), channels, layout, rows per block, broken.
std::vector<uint8_t> test_file(int width, int height, int channels, Layout layout, int block_rows,
                               bool broken = false) {
  std::vector<uint8_t> file{'H', 'R', 'T', 'E', 'S', 'T'};
  for (int value :
       {width, width >> 8, height, height >> 8, channels, int(layout), block_rows, int(broken)}) {
    file.push_back(static_cast<uint8_t>(value));
  }
  return file;
}

constexpr uint8_t kSound = 2;  // in the place of `broken`: a file without damage

struct Decodes {
  std::vector<size_t> calls;    // jobs of each decode call
  std::vector<Window> windows;  // asked for
};
Decodes decodes;

class TestDecoder final : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    return ImageHeader{.width = bytes[6] | bytes[7] << 8,
                       .height = bytes[8] | bytes[9] << 8,
                       .channels = bytes[10]};
  }
  int lanes() const override { return 3; }
  void decode(std::span<DecodeJob> jobs) override {
    decodes.calls.push_back(jobs.size());
    for (DecodeJob& job : jobs) decode(job);
  }

 private:
  void decode(DecodeJob& job) {
    decodes.windows.push_back(job.window);
    const int channels = job.bytes[10], block_rows = job.bytes[12];
    const auto layout = static_cast<Layout>(job.bytes[11]);
    const int width = job.window.width;
    for (int y = 0; y < job.window.height; y += block_rows) {
      RowBlock block{.y = y, .count = std::min(block_rows, job.window.height - y)};
      // Exactly what is allowed to be read: the rows, and 64 bytes after them.
      const ptrdiff_t plane = ptrdiff_t{width} * block.count + 64;
      std::vector<uint8_t> rows(plane * channels, 0xee);
      block.step = layout == Layout::kPlanar ? 1 : channels;
      block.stride = width * block.step;
      for (int c = 0; c < channels; ++c) {
        // Spread: interleaved, in the opposite order of channels.
        const ptrdiff_t at = layout == Layout::kPlanar        ? c * plane
                             : layout == Layout::kInterleaved ? c
                                                              : channels - 1 - c;
        block.channel[c] = rows.data() + at;
        for (int i = 0; i < block.count; ++i) {
          for (int x = 0; x < width; ++x) {
            rows[at + i * block.stride + x * block.step] =
                pixel(job.window.x + x, job.window.y + y + i, c);
          }
        }
      }
      job.sink->rows(block);
      if (job.bytes[13] == 1) {
        job.result = Error{.code = &kBroken, .what = "stopped in the middle"};
        return;
      }
    }
    job.warnings = job.bytes[13] == kSound ? 0 : 2;
  }
};

const CodecRecord kTestCodec{
    .name = "test",
    .doc = "Images that are made up.",
    .oracle = "itself",
    .suffixes = {},
    .sniff =
        [](std::span<const uint8_t> bytes) {
          return bytes.size() >= 6 && std::memcmp(bytes.data(), "HRTEST", 6) == 0;
        },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<TestDecoder>(); }};
const Register<CodecRecord> registered(kTestCodec);

std::shared_ptr<const Picture> test_picture(int width, int height, int channels) {
  auto picture = std::make_shared<Picture>(channels, height, width, DType::kUInt8);
  for (int c = 0; c < channels; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) picture->plane(c)[y * width + x] = pixel(x, y, c);
    }
  }
  return picture;
}

size_t bytes_of(const Recipe& recipe) {
  return size_t(recipe.channels()) * recipe.size().height * recipe.size().width *
         size_of(recipe.dtype());
}

std::vector<uint8_t> rendered(Renderer& renderer, const Recipe& recipe,
                              MemoryFormat format = MemoryFormat::kChannelsFirst) {
  std::vector<uint8_t> out(bytes_of(recipe) + 64, 0x5a);
  RenderTask task{.recipe = &recipe, .target = {out.data(), format}, .result = {}};
  renderer.render({&task, 1});
  EXPECT_TRUE(task.result);
  EXPECT_TRUE(std::all_of(out.end() - 64, out.end(), [](uint8_t b) { return b == 0x5a; }));
  out.resize(out.size() - 64);
  return out;
}

// REQUIRES: the file outlives the recipe.
Recipe opened(Renderer& renderer, std::vector<uint8_t>&& file) = delete;
Recipe opened(Renderer& renderer, const std::vector<uint8_t>& file) {
  Result<EncodedImage> picture = renderer.open(file, {});
  EXPECT_TRUE(picture);
  picture->color = ColorMode::kStored;
  return Recipe(*picture);
}

// The same random steps for any recipe of a picture; steps that a recipe cannot represent are
// omitted.
void random_steps(Recipe& recipe, uint32_t seed) {
  std::mt19937 engine(seed);
  const auto below = [&](int n) { return int(engine() % unsigned(n)); };
  const auto crop = [&] {
    const Size size = recipe.size();
    const int w = 1 + below(size.width), h = 1 + below(size.height);
    (void)recipe.crop({below(size.width - w + 1), below(size.height - h + 1), w, h});
  };
  if (below(2)) crop();
  if (below(3) == 0) (void)recipe.transpose();
  if (below(2)) (void)recipe.flip_horizontal();
  if (below(3) == 0) (void)recipe.flip_vertical();
  if (below(4)) (void)recipe.resize({1 + below(90), 1 + below(90)}, Filter(below(3)));
  if (below(2)) crop();
  const double fill[] = {7, 80, 200, 255};
  if (below(3) == 0) {
    (void)recipe.pad(below(9), below(9), below(9), below(9),
                     std::span(fill).first(recipe.channels()));
  }
  if (below(3) == 0) (void)recipe.flip_horizontal();
  if (below(3) == 0) crop();
  if (below(2)) (void)recipe.map({.dtype = DType::kFloat32, .scale = true, .mean = {}, .std = {}});
  if (below(4) == 0)
    (void)recipe.map({.dtype = DType::kFloat16, .scale = true, .mean = {}, .std = {}});
}

TEST(Render, RowDeliveryDoesNotAffectTheResult) {
  Renderer renderer;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 engine(seed);
    const auto below = [&](int n) { return int(engine() % unsigned(n)); };
    const int width = 1 + below(150), height = 1 + below(150), channels = 1 + below(4);
    Recipe made{test_picture(width, height, channels)};
    random_steps(made, seed);
    const std::vector<uint8_t> expected = rendered(renderer, made);
    for (Layout layout : {Layout::kInterleaved, Layout::kPlanar, Layout::kSpread}) {
      const std::vector<uint8_t> file = test_file(width, height, channels, layout, 1 + below(20));
      Recipe recipe = opened(renderer, file);
      random_steps(recipe, seed);
      ASSERT_EQ(recipe.size(), made.size());
      for (SimdLevel level : available_levels()) {
        set_simd_level(level);
        ASSERT_EQ(rendered(renderer, recipe), expected)
            << "seed " << seed << " on " << name_of(level);
      }
    }
  }
}

TEST(Render, ChannelsLastHasTheSameValues) {
  Renderer renderer;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Recipe recipe{test_picture(20 + seed % 50, 60 - seed % 30, 1 + seed % 4)};
    random_steps(recipe, seed);
    const std::vector<uint8_t> first = rendered(renderer, recipe);
    const std::vector<uint8_t> last = rendered(renderer, recipe, MemoryFormat::kChannelsLast);
    const size_t bytes = size_of(recipe.dtype()), channels = recipe.channels();
    const size_t pixels = first.size() / bytes / channels;
    for (size_t i = 0; i < pixels * channels; ++i) {
      const size_t at = i % pixels * channels + i / pixels;
      ASSERT_EQ(std::memcmp(&first[i * bytes], &last[at * bytes], bytes), 0);
    }
  }
}

TEST(Render, DecodesOnlyTheWindowThatIsNeeded) {
  Renderer renderer;
  const std::vector<uint8_t> file = test_file(1000, 800, 3, Layout::kInterleaved, 16);
  Recipe recipe = opened(renderer, file);
  EXPECT_TRUE(recipe.crop({100, 50, 500, 400}));
  EXPECT_TRUE(recipe.resize({40, 50}, Filter::kBilinear));  // 10 to 1
  EXPECT_TRUE(recipe.crop({20, 10, 10, 5}));
  decodes = {};
  rendered(renderer, recipe);
  ASSERT_EQ(decodes.windows.size(), 1u);
  // Outputs 20..29 and 10..14, and the filter's support of 10 around their centers.
  EXPECT_EQ(decodes.windows[0], (Window{100 + 195, 50 + 95, 110, 60}));
}

TEST(Render, ACodecDecodesAsManyImagesInParallelAsItHasLanes) {
  Renderer renderer;
  std::vector<std::vector<uint8_t>> files, outs;
  std::vector<Recipe> recipes;
  for (int i = 0; i < 8; ++i) {
    files.push_back(test_file(30 + i, 40, 3, Layout::kInterleaved, 7, i == 4));
    recipes.push_back(opened(renderer, files.back()));
    if (i == 2) recipes.back() = Recipe(test_picture(33, 20, 3));  // not decoded at all
    EXPECT_TRUE(recipes.back().resize({20, 20}, Filter::kBilinear));
    outs.emplace_back(bytes_of(recipes.back()));
  }
  std::vector<RenderTask> tasks(recipes.size());
  for (size_t i = 0; i < tasks.size(); ++i) tasks[i] = {&recipes[i], {outs[i].data()}, {}, 0};
  decodes = {};
  renderer.render(tasks);
  EXPECT_EQ(decodes.calls, (std::vector<size_t>{3, 3, 1}));
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (i == 4) {  // the broken one does not affect its neighbors
      ASSERT_FALSE(tasks[i].result);
      EXPECT_EQ(tasks[i].result.error().code->id, "HR9901");
      continue;
    }
    ASSERT_TRUE(tasks[i].result);
    EXPECT_EQ(tasks[i].warnings, i == 2 ? 0 : 2);
    EXPECT_EQ(outs[i], rendered(renderer, recipes[i])) << i;
  }
}

// Renders them at once; `warnings` of all.
std::vector<std::vector<uint8_t>> rendered_together(Renderer& renderer,
                                                    const std::vector<Recipe>& recipes,
                                                    int* warnings = nullptr) {
  std::vector<std::vector<uint8_t>> outs;
  std::vector<RenderTask> tasks(recipes.size());
  for (const Recipe& recipe : recipes) outs.emplace_back(bytes_of(recipe));
  for (size_t i = 0; i < tasks.size(); ++i) tasks[i] = {&recipes[i], {outs[i].data()}, {}, 0};
  decodes = {};
  renderer.render(tasks);
  for (const RenderTask& task : tasks) {
    EXPECT_TRUE(task.result);
    if (warnings) *warnings += task.warnings;
  }
  return outs;
}

TEST(Render, ViewsOfOneImageShareItsDecodeAndEqualThoseDecodedAlone) {
  Renderer renderer, other;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::vector<uint8_t> file = test_file(50 + seed % 90, 40 + seed % 70, 1 + seed % 4,
                                          static_cast<Layout>(seed % 3), 1 + int(seed % 20));
    file[13] = seed % 5 ? kSound : 0;
    std::vector<Recipe> views(2 + seed % 6, opened(renderer, file));
    for (size_t i = 0; i < views.size(); ++i) random_steps(views[i], seed * 10 + uint32_t(i));
    const auto together = rendered_together(renderer, views);
    for (size_t i = 0; i < views.size(); ++i) {
      ASSERT_EQ(together[i], rendered(other, views[i])) << seed << " " << i;
    }
  }
}

TEST(Render, OneDecodeCoversTheWindowsOfNearbyViews) {
  Renderer renderer;
  std::vector<uint8_t> file = test_file(400, 300, 3, Layout::kPlanar, 16);
  file[13] = kSound;
  std::vector<Recipe> views(3, opened(renderer, file));
  EXPECT_TRUE(views[0].crop({10, 20, 200, 200}));
  EXPECT_TRUE(views[1].crop({150, 100, 200, 150}));
  EXPECT_TRUE(views[2].crop({0, 150, 100, 100}));
  rendered_together(renderer, views);
  ASSERT_EQ(decodes.windows.size(), 1u);
  EXPECT_EQ(decodes.windows[0], (Window{0, 20, 350, 230}));
}

// Separate decodes would walk the rows twice, but two corners are a small part of a large picture.
TEST(Render, DistantViewsAreDecodedSeparately) {
  Renderer renderer;
  std::vector<uint8_t> file = test_file(4000, 3000, 3, Layout::kPlanar, 16);
  file[13] = kSound;
  std::vector<Recipe> views(2, opened(renderer, file));
  EXPECT_TRUE(views[0].crop({0, 0, 50, 50}));
  EXPECT_TRUE(views[1].crop({3900, 2900, 50, 50}));
  rendered_together(renderer, views);
  EXPECT_EQ(decodes.windows.size(), 2u);
}

TEST(Render, ViewsOfADamagedImageEqualThoseDecodedAlone) {
  Renderer renderer;
  const std::vector<uint8_t> file = test_file(100, 100, 3, Layout::kPlanar, 16);
  const std::vector<Recipe> views(2, opened(renderer, file));
  int warnings = 0;
  rendered_together(renderer, views, &warnings);
  EXPECT_EQ(decodes.windows.size(), 3u);
  EXPECT_EQ(warnings, 4);
  EXPECT_EQ(renderer.take_remarks().repaired, 2);
}

TEST(Render, MoreViewsThanLanesStillShareOneDecode) {
  Renderer renderer;
  std::vector<uint8_t> file = test_file(100, 90, 3, Layout::kPlanar, 16);
  file[13] = kSound;
  std::vector<uint8_t> next = file;
  std::vector<Recipe> views(60, opened(renderer, file));
  views.push_back(opened(renderer, next));
  rendered_together(renderer, views);
  EXPECT_EQ(decodes.windows.size(), 2u);
}

TEST(Render, AfterAnErrorTheNextImageIsIntact) {
  Renderer renderer;
  const std::vector<uint8_t> bad_file = test_file(60, 60, 3, Layout::kPlanar, 9, true);
  const std::vector<uint8_t> good_file = test_file(60, 60, 3, Layout::kPlanar, 9);
  Recipe broken = opened(renderer, bad_file);
  ASSERT_TRUE(broken.resize({20, 20}, Filter::kBicubic));
  EXPECT_FALSE(renderer.materialize(broken));
  Recipe good = opened(renderer, good_file);
  Recipe made{test_picture(60, 60, 3)};
  EXPECT_TRUE(good.resize({20, 20}, Filter::kBicubic));
  EXPECT_TRUE(made.resize({20, 20}, Filter::kBicubic));
  EXPECT_EQ(rendered(renderer, good), rendered(renderer, made));
}

// Makes each allocation of a render fail, one after another; then renders another image.
void refuse_each(const std::vector<uint8_t>& file, const std::vector<uint8_t>& other) {
  int64_t refused = 0;
  for (bool is_refused = true; is_refused; ++refused) {
    Renderer renderer, fresh;
    Recipe first = opened(renderer, file), second = opened(renderer, file);
    ASSERT_TRUE(first.resize({40, 30}, Filter::kBilinear));
    ASSERT_TRUE(second.resize({20, 25}, Filter::kBicubic));
    std::vector<uint8_t> out(2 * bytes_of(first));
    RenderTask tasks[]{{.recipe = &first, .target = {out.data()}, .result = {}},
                       {.recipe = &second, .target = {out.data() + bytes_of(first)}, .result = {}}};
    until_refusal = refused;
    try {
      renderer.render(tasks);
      is_refused = false;
    } catch (const std::bad_alloc&) {
    }
    until_refusal = -1;
    for (const std::vector<uint8_t>& next : {file, other}) {
      ASSERT_EQ(rendered(renderer, opened(renderer, next)), rendered(fresh, opened(fresh, next)))
          << "refusal " << refused;
    }
  }
  EXPECT_GT(refused, 10);
}

TEST(Render, AfterAFailedAllocationTheNextImageIsIntact) {
  const auto jpeg = [](int width, int height) {
    const Buffer bytes = recipe_test::jpeg_bytes(width, height);
    std::vector<uint8_t> file(bytes.data(), bytes.data() + bytes.size());
    file.resize(file.size() + Buffer::kPadding);
    return file;
  };
  const std::vector<uint8_t> file = test_file(90, 70, 3, Layout::kInterleaved, 8);
  refuse_each(file, jpeg(64, 48));
  refuse_each(jpeg(200, 150), file);
  refuse_each(jpeg(200, 150), jpeg(64, 48));
}

TEST(Render, UnknownFormatsAreAnErrorThatNamesTheCodecs) {
  Renderer renderer;
  const std::vector<uint8_t> bytes{'<', 'h', 't', 'm', 'l', '>'};
  const Result<EncodedImage> page = renderer.open(bytes, {});
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code->id, "HR0340");
  EXPECT_EQ(page.error().what, "this is an HTML page, which this build cannot decode");
  EXPECT_NE(page.error().note.find("test"), std::string::npos);
  const std::vector<uint8_t> nothing{0x3c, 0x68, 0x75};
  EXPECT_EQ(renderer.open(nothing, {}).error().what,
            "no codec recognizes these bytes; they begin with 3c 68 75");
  EXPECT_EQ(renderer.open({}, {}).error().what, "the file is empty");
}

TEST(Render, TooManyPixelsAreRejectedFromTheHeader) {
  Renderer renderer;
  const std::vector<uint8_t> file = test_file(1000, 1001, 3, Layout::kPlanar, 1);
  EXPECT_EQ(renderer.open(file, {.max_pixels = 1000 * 1000}).error().code->id, "HR0310");
  EXPECT_TRUE(renderer.open(file, {.max_pixels = 1000 * 1001}));
}

TEST(Render, StaysWithinItsMemoryEstimateAndReturnsIt) {
  Renderer renderer;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Renderer fresh;
    Recipe recipe{test_picture(200 + seed, 300, 3)};
    random_steps(recipe, seed);
    rendered(fresh, recipe);
    EXPECT_LE(fresh.held_bytes(), working_bytes(recipe) + 4096) << seed;
    rendered(renderer, recipe);
  }
  EXPECT_GT(renderer.held_bytes(), 10000u);
  renderer.trim(10000);
  EXPECT_LE(renderer.held_bytes(), 10000u);
}

TEST(Render, CountsItsStages) {
  Renderer renderer;
  const std::vector<uint8_t> file = test_file(500, 500, 3, Layout::kInterleaved, 1);
  Recipe recipe = opened(renderer, file);
  EXPECT_TRUE(recipe.resize({300, 300}, Filter::kBilinear));
  rendered(renderer, recipe);
  EXPECT_GT(renderer.seconds().entropy, 0);
  EXPECT_GT(renderer.seconds().resample, 0);
  EXPECT_GT(renderer.seconds().store, 0);
}

}  // namespace
}  // namespace headrace
