// SPDX-License-Identifier: Apache-2.0
// Data that stays in memory, on the host or a device, gives the same batches as the engine, bit for
// bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>

#include "headrace/delivery/resident_test_data.h"
#include "headrace/device/device.h"
#include "headrace/device/simulated/simulated_device.h"
#include "headrace/loader.h"
#include "headrace/sources/columns/columns.h"

namespace headrace {
namespace {

using Given = std::map<std::string, ParamValue>;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

Spec spec(const std::string& name, const Given& given = {}, std::vector<std::string> fields = {}) {
  return {name, given, std::move(fields), {}};
}

constexpr int64_t kRecords = 37, kRows = 10;
constexpr int kHeight = 9, kWidth = 12;

struct Pictures {
  Bytes images, masks;
  std::vector<int64_t> labels;
  SourcePtr source;

  explicit Pictures(uint32_t seed) {
    std::mt19937 random(seed);
    images.resize(size_t(kRecords) * 3 * kHeight * kWidth);
    masks.resize(size_t(kRecords) * kHeight * kWidth);
    for (uint8_t& byte : images) byte = uint8_t(random());
    for (uint8_t& byte : masks) byte = uint8_t(random());
    for (int64_t i = 0; i < kRecords; ++i) labels.push_back(i * i);
    source = records(
        {{.name = "image",
          .values = ArrayColumn{images.data(), DType::kUInt8, kRecords, {3, kHeight, kWidth}, {}}},
         {.name = "mask",
          .values = ArrayColumn{masks.data(), DType::kUInt8, kRecords, {1, kHeight, kWidth}, {}}},
         {.name = "label", .values = ArrayColumn{labels.data(), DType::kInt64, kRecords, {}, {}}}});
  }
};

const std::vector<Spec> kNormalize = {
    spec("ToDtype", {{"dtype", DType::kFloat32}, {"scale", true}}),
    spec("Normalize", {{"mean", Floats{0.4, 0.5, 0.6}}, {"std", Floats{0.2, 0.25, 0.3}}},
         {"image"})};

std::vector<Spec> with_floats(std::vector<Spec> steps) {
  steps.insert(steps.end(), kNormalize.begin(), kNormalize.end());
  return steps;
}

const Spec kCrop = spec("RandomCrop", {{"size", Ints{8, 10}}, {"padding", int64_t{3}}});
const Spec kFill =
    spec("RandomCrop", {{"size", Ints{12, 12}}, {"padding", int64_t{3}}, {"fill", 77.0}});
const Spec kFlip = spec("RandomHorizontalFlip");
const Spec kErase = spec("RandomErasing", {{"p", 0.6}, {"value", Floats{1, 2, 3}}});

// The mask may stay: views of the picture are meant to differ from it.
Spec alone(Spec step) {
  step.fields = {"image"};
  return step;
}

std::vector<std::vector<Spec>> pipelines() {
  return {{},
          {kFlip},
          {kCrop},
          {kCrop, kFlip},
          {kFlip, kCrop},
          with_floats({kCrop, kFlip}),
          with_floats({kFill, kFlip}),
          {kFill, spec("ToDtype", {{"dtype", DType::kFloat16}, {"scale", true}}), kFlip},
          {kCrop, kFlip, kErase},
          {kErase, kFlip, spec("CenterCrop", {{"size", int64_t{7}}})},
          [] {
            auto steps = with_floats({kCrop, kFlip});
            steps.push_back(kErase);
            return steps;
          }(),
          {spec("RandomApply", {{"transforms", std::vector<Branch>{{"", {kFlip}}}}, {"p", 0.5}})},
          {spec("Fork", {{"field", std::string("image")},
                         {"branches", std::vector<Branch>{{"a", {alone(kCrop)}},
                                                          {"b", {alone(kCrop), alone(kFlip)}}}}})}};
}

// Steps that a device resizes, and the host leaves to the engine.
std::vector<std::vector<Spec>> resized() {
  const Spec crop = spec("RandomResizedCrop", {{"size", Ints{6, 7}}});
  const Spec cubic = spec("RandomResizedCrop",
                          {{"size", Ints{15, 14}}, {"interpolation", std::string("bicubic")}});
  return {{crop},
          {kFlip, spec("RandomVerticalFlip")},
          {spec("RandomCrop", {{"size", int64_t{8}}}), spec("Resize", {{"size", Ints{5, 5}}})},
          {cubic, kFlip, kErase},
          with_floats({crop, kFlip}),
          [&] {
            auto steps = with_floats({cubic, spec("RandomCrop", {{"size", int64_t{11}}})});
            steps.push_back(kErase);
            return steps;
          }(),
          {spec("Fork", {{"field", std::string("image")},
                         {"branches", std::vector<Branch>{{"a", {alone(crop)}},
                                                          {"b", {alone(cubic), alone(kFlip)}}}}})}};
}

std::vector<std::vector<Spec>> device_specs() {
  std::vector<std::vector<Spec>> all = pipelines();
  std::ranges::move(resized(), std::back_inserter(all));
  return all;
}

// Both run for three epochs; the device's batches are compared two batches later.
void expect_equal(const Pictures& data, const std::vector<Spec>& steps, const DevicePtr& device,
                  LoaderOptions options, bool on_device = true) {
  Loader streamed(data.source, Pipeline{steps, {}, {}}, options);
  options.resident = ResidentUse::kOn;
  options.device = device;
  Loader resident(data.source, Pipeline{steps, {}, {}}, options);
  ASSERT_EQ(resident.load_resident(), on_device) << resident.resolved("resident");
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::optional<Batch> last;
    std::vector<Bytes> expected;
    const auto compare = [&] {
      for (size_t i = 0; last && i < last->fields.size(); ++i) {
        ASSERT_EQ(read(*device, last->fields[i]), expected[i])
            << last->fields[i].name << " of batch " << last->index << ", epoch " << epoch;
      }
    };
    while (const std::optional<Batch> wanted = streamed.next()) {
      std::optional<Batch> got = resident.next();
      ASSERT_TRUE(got);
      compare();
      last = std::move(got);
      expected.clear();
      for (const BatchField& field : wanted->fields) {
        expected.push_back(read(*device, field));
        const BatchField& its = (*last)[field.name];
        EXPECT_EQ(its.view.shape, field.view.shape);
        EXPECT_EQ(its.view.dtype, field.view.dtype);
      }
    }
    compare();
    EXPECT_FALSE(resident.next());
  }
}

LoaderOptions options_of(uint64_t seed) {
  return {.batch_size = kRows,
          .shuffle = seed % 3 != 0,
          .seed = seed,
          .last_batch = seed % 2 ? LastBatch::kPad : LastBatch::kKeep};
}

TEST(ResidentOnADevice, BatchesEqualThoseOfTheEngine) {
  const Pictures data(1);
  uint64_t seed = 0;
  for (const std::vector<Spec>& steps : device_specs()) {
    SCOPED_TRACE("pipeline " + std::to_string(seed));
    for (int i = 0; i < 3; ++i, ++seed) {
      expect_equal(data, steps, std::make_shared<SimulatedDevice>(seed), options_of(seed));
    }
  }
}

TEST(ResidentOnADevice, ChannelsLastAndPartialResidenceWorkToo) {
  const Pictures data(2);
  uint64_t seed = 0;
  for (const std::vector<Spec>& steps : device_specs()) {
    SCOPED_TRACE("pipeline " + std::to_string(seed));
    LoaderOptions options = options_of(seed);
    options.plan.memory_format = MemoryFormat::kChannelsLast;
    options.fraction = seed % 2 ? 1.0 : 0.4;
    expect_equal(data, steps, std::make_shared<SimulatedDevice>(seed), options);
    ++seed;
  }
}

TEST(ResidentOnTheHost, BatchesEqualThoseOfTheEngine) {
  const Pictures data(5);
  uint64_t seed = 0;
  for (const std::vector<Spec>& steps : pipelines()) {
    SCOPED_TRACE("pipeline " + std::to_string(seed));
    for (int i = 0; i < 6; ++i, ++seed) {
      LoaderOptions options = options_of(seed);
      if (i % 2) options.plan.memory_format = MemoryFormat::kChannelsLast;
      options.threads = 1 + i % 3;
      expect_equal(data, steps, host_device(), options, false);
    }
  }
}

// Rare enough not to occur when the steps are sampled.
TEST(ResidentOnTheHost, TheEngineHandlesRecordsWithOtherSteps) {
  const Pictures data(6);
  const std::vector<Spec> rare = {
      kCrop,
      spec("RandomApply",
           {{"transforms", std::vector<Branch>{{"",
                                                {spec("Resize", {{"size", Ints{8, 10}}}),
                                                 spec("RandomVerticalFlip", {{"p", 1.0}})}}}},
            {"p", 0.01}})};
  for (int threads : {1, 3}) {
    LoaderOptions options = options_of(2);
    options.threads = threads;
    expect_equal(data, rare, host_device(), options, false);
    options.resident = ResidentUse::kOn;
    Loader loader(data.source, Pipeline{rare, {}, {}}, options);
    for (int epoch = 0; epoch < 3; ++epoch) {
      while (loader.next()) {
      }
    }
    EXPECT_NE(loader.resolved("resident").find("by the engine since batch"), std::string::npos);
  }
}

TEST(ResidentOnADevice, AnUnsupportedStepIsNamedAndRunByTheEngine) {
  const Pictures data(3);
  const std::pair<std::vector<Spec>, std::string> cases[] = {
      {{kFlip, spec("RandomInvert")}, "RandomInvert()"},
      {{spec("RandomResizedCrop", {{"size", int64_t{4}}}), spec("Resize", {{"size", Ints{5, 5}}})},
       "Resize(size=[5, 5])"},
      {{kErase, spec("ToDtype", {{"dtype", DType::kFloat32}})}, "ToDtype(dtype=float32)"},
      {{kFlip, spec("RandomRotation", {{"degrees", 30.0}})}, "RandomRotation(degrees=30)"}};
  for (const auto& [steps, name] : cases) {
    LoaderOptions options = options_of(5);
    auto device = std::make_shared<SimulatedDevice>(5);
    expect_equal(data, steps, device, options, false);
    options.resident = ResidentUse::kOn;
    options.device = device;
    Loader loader(data.source, Pipeline{steps, {}, {}}, options);
    loader.load_resident();
    EXPECT_NE(loader.resolved("resident")
                  .find("(on the host, not on simulated: " + name + " is not supported there)"),
              std::string::npos)
        << loader.resolved("resident");
  }
}

// Earlier batches are correct, and no memory of this one remains in use on the device.
TEST(ResidentOnADevice, RunningOutOfMemoryOrLosingTheDeviceWhileResizingEndsTheRun) {
  const Pictures data(9);
  const std::vector<Spec> steps = with_floats({resized()[0][0], kFlip});
  LoaderOptions options = options_of(4);
  Loader streamed(data.source, Pipeline{steps, {}, {}}, options);
  std::vector<Bytes> expected;
  while (const auto batch = streamed.next()) {
    expected.push_back(read(*host_device(), (*batch)["image"]));
  }
  options.resident = ResidentUse::kOn;
  int failed = 0;
  for (int64_t k = 1; k <= 200; ++k) {
    for (const bool loses : {false, true}) {
      auto device = std::make_shared<SimulatedDevice>(uint64_t(k));
      loses ? device->fail_at(k) : device->refuse_allocation(k);
      options.device = device;
      {
        Loader loader(data.source, Pipeline{steps, {}, {}}, options);
        size_t taken = 0;
        try {
          while (const auto batch = loader.next()) {
            ASSERT_EQ(read(*device, (*batch)["image"]), expected[taken++]) << k;
          }
          EXPECT_EQ(taken, expected.size());
        } catch (const Exception& exception) {
          ++failed;
          EXPECT_EQ(exception.error().code->id, loses ? "HR0883" : "HR0880") << exception.what();
        }
      }
      EXPECT_EQ(device->allocated_bytes(), 0u);
      EXPECT_EQ(device->pinned_ranges(), 0);
    }
  }
  EXPECT_GT(failed, 30);
}

TEST(ResidentOnADevice, DataThatIsTooLargeForTheDeviceIsRejectedOrStreamed) {
  const Pictures data(4);
  LoaderOptions options = options_of(1);
  options.device = std::make_shared<SimulatedDevice>(1, SimulatedCosts{}, size_t{20} << 10);
  options.resident = ResidentUse::kOn;
  Loader refused(data.source, {}, options);
  try {
    refused.load_resident();
    ADD_FAILURE() << "it was taken";
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code->id, "HR0891");
  }
  options.resident = ResidentUse::kAuto;
  Loader streamed(data.source, {}, options);
  EXPECT_FALSE(streamed.load_resident());
  EXPECT_NE(streamed.resolved("resident").find("on the host, not on simulated"), std::string::npos);
}

}  // namespace
}  // namespace headrace
