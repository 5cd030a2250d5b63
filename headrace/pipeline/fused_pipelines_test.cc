// SPDX-License-Identifier: Apache-2.0
// Random pipelines: fused passes equal executing every step on finished pixels, byte for byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "headrace/pipeline/plan_test_records.h"

namespace headrace::plan_test {
namespace {

constexpr int kPipelines = 800;

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  int below(int n) { return static_cast<int>(random_() % uint32_t(n)); }

  // `floats`: whether the image has a floating dtype at this point.
  Spec geometry(bool floats) {
    // Tenths are not exact in the narrow dtypes.
    const double fill = floats ? below(11) / 10.0 : below(3) * 100.0;
    switch (below(9)) {
      case 0:
        return spec("RandomHorizontalFlip", {{"p", below(3) / 2.0}});
      case 1:
        return spec("RandomVerticalFlip", {{"p", below(3) / 2.0}});
      case 2:
        return spec("Pad",
                    {{"padding", Ints{below(4), below(4), below(4), below(4)}}, {"fill", fill}});
      case 3:
        return spec("CenterCrop", {{"size", Ints{1 + below(40), 1 + below(40)}}});
      case 4:
        return spec("RandomCrop", {{"size", Ints{1 + below(30), 1 + below(30)}},
                                   {"pad_if_needed", true},
                                   {"fill", fill}});
      case 5:
        return spec("RandomCrop", {{"size", Ints{1 + below(6), 1 + below(6)}},
                                   {"padding", int64_t{below(9)}},
                                   {"pad_if_needed", below(2) == 0},
                                   {"fill", fill}});
      case 6:
        return spec("Resize",
                    {{"size", Ints{1 + below(50), 1 + below(50)}}, {"interpolation", filter()}});
      case 7:
        return spec("Resize", {{"size", int64_t{1 + below(50)}}, {"interpolation", filter()}});
      default:
        return spec("RandomResizedCrop", {{"size", Ints{1 + below(40), 1 + below(40)}},
                                          {"scale", Floats{0.1, 1}},
                                          {"interpolation", filter()}});
    }
  }

  Specs pipeline() {
    Specs steps;
    bool floats = false;
    DType dtype = DType::kUInt8;
    const int length = 1 + below(8);
    for (int i = 0; i < length; ++i) {
      switch (below(9)) {
        case 3:
          if (dtype != DType::kUInt8 && dtype != DType::kFloat32) break;
          steps.push_back(spec("Grayscale", {{"num_output_channels", int64_t{1 + 2 * below(2)}}}));
          break;
        case 0: {
          constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
          dtype = kTypes[below(3)];
          steps.push_back(spec("ToDtype", {{"dtype", dtype}, {"scale", below(4) > 0}}));
          floats = true;
          break;
        }
        case 1:
          if (floats) {
            steps.push_back(spec("Normalize", {{"mean", 0.25 + below(3) / 4.0}, {"std", 0.3}}));
          }
          break;
        case 2: {
          Specs some;
          for (int j = 0; j <= below(3); ++j) some.push_back(geometry(floats));
          steps.push_back(maybe(0.5, some));
          break;
        }
        default:
          steps.push_back(geometry(floats));
      }
    }
    return steps;
  }

 private:
  std::string filter() {
    return std::vector<std::string>{"nearest", "bilinear", "bicubic"}[size_t(below(3))];
  }
  std::mt19937 random_;
};

std::string text_of(const Error& error) { return std::string(error.code->id) + " " + error.what; }

// All pictures at the end, or the text of the record's error.
struct Outcome {
  std::vector<Grid> grids;
  std::string error;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome(const Plan& plan, const Record& record, Renderer& renderer) {
  Outcome out;
  for (const Output& output : plan.outputs()) {
    out.grids.push_back(recipe_test::render(record.fields[output.field].picture, renderer));
  }
  return out;
}

Outcome in_few_passes(const Plan& plan, const Read& read, int64_t position, Renderer& renderer) {
  Record record;
  record.position = position;
  EXPECT_TRUE(plan.begin(read.data(), record, renderer));
  Result<int> done = plan.advance(0, record, renderer, 1, 2);
  if (!done) return {{}, text_of(done.error())};
  return outcome(plan, record, renderer);
}

// The same steps with the same draws, but materialized before each one.
Outcome step_by_step(const Plan& plan, const Read& read, int64_t position, Renderer& renderer) {
  Record record;
  record.position = position;
  EXPECT_TRUE(plan.begin(read.data(), record, renderer));
  const int end = static_cast<int>(plan.steps().size());
  for (int at = 0; at < end; ++at) {
    const Step& each = plan.steps()[size_t(at)];
    Draws draws(1, 2, uint64_t(position), each.key);
    if (each.kind == Step::Kind::kCoin) {
      if (!draws.coin(each.probability)) at = each.jump - 1;
      continue;
    }
    for (int field : each.fields) {
      EXPECT_TRUE(renderer.materialize(record.fields[size_t(field)].picture));
    }
    OpContext context{record, each.fields, draws, renderer};
    if (Result<void> done = each.op->apply(context); !done) return {{}, text_of(done.error())};
  }
  return outcome(plan, record, renderer);
}

std::string text_of(const Specs& steps) {
  std::string out;
  for (const Spec& each : steps) {
    out += "\n  " + each.name;
    for (const auto& [name, value] : each.arguments) out += " " + name + "=" + text_of(value);
  }
  return out;
}

TEST(FusedPipelines, EqualStepByStep) {
  Renderer renderer;
  int failures_of_records = 0, planned = 0;
  for (int trial = 0; planned < kPipelines; ++trial) {
    Generator generator(static_cast<uint32_t>(trial));
    const int width = 1 + generator.below(45), height = 1 + generator.below(45);
    PlanOptions options = lists();
    Schema schema;
    Read read;
    switch (trial % 3) {
      case 0:  // a file with an EXIF orientation
        options.exif_orientation = true;
        schema = {files("image")};
        read.file(recipe_test::with_orientation(
            recipe_test::jpeg_bytes(width, height, trial % 2 == 0), 1 + generator.below(8)));
        break;
      case 1:  // pixels
        schema = {pixels("image", {trial % 2 ? 1 : 3, -1, -1})};
        read.pixels(recipe_test::random_grid(trial % 2 ? 1 : 3, height, width, uint32_t(trial)));
        break;
      default:  // pixels with a mask
        schema = {pixels("image", {3, -1, -1}), pixels("mask", {1, -1, -1}, FieldKind::kMask)};
        read.pixels(recipe_test::random_grid(3, height, width, uint32_t(trial)))
            .pixels(recipe_test::random_grid(1, height, width, uint32_t(trial) + 1));
    }
    const Specs steps = generator.pipeline();
    PlanPtr plan;
    // A crop that is always too large, or an invalid fill value for the mask.
    if (refusal([&] { plan = plan_of(schema, steps, options); }) != "accepted") continue;
    ++planned;
    for (int64_t position = 0; position < 3; ++position) {
      const Outcome fused = in_few_passes(*plan, read, position, renderer);
      ASSERT_EQ(fused, step_by_step(*plan, read, position, renderer))
          << "trial " << trial << ", " << height << " x " << width << ", position " << position
          << text_of(steps);
      failures_of_records += !fused.error.empty();
    }
  }
  EXPECT_LT(failures_of_records, kPipelines * 3 / 4) << "most pipelines should be ones that run";
}

}  // namespace
}  // namespace headrace::plan_test
