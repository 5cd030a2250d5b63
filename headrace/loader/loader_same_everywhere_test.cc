// SPDX-License-Identifier: Apache-2.0
// One seed gives one stream of bytes on every machine: hashes of epochs over examples/images,
// which x86 and 64-bit ARM must both reproduce, at each SIMD level. Other tests check that the
// bytes are right; this one checks that they do not depend on the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "headrace/formats/format.h"
#include "headrace/kernels/content_hash.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/loader.h"

namespace headrace {
namespace loader_same_everywhere_test {

namespace fs = std::filesystem;

// The checkout's folder of pictures, in or below which this program was built; else empty.
fs::path example_pictures() {
  for (fs::path at = fs::read_symlink("/proc/self/exe"); at.has_relative_path();) {
    at = at.parent_path();
    if (fs::exists(at / "examples/images")) return at / "examples/images";
  }
  return {};
}

uint64_t hash_of_epochs(const SourcePtr& source, const std::vector<Spec>& transforms,
                        MemoryFormat format) {
  Pipeline pipeline;
  pipeline.transforms = transforms;
  LoaderOptions options;
  options.batch_size = 4;
  options.threads = 2;
  options.shuffle = true;
  options.seed = 7;
  options.plan.memory_format = format;
  Loader loader(source, pipeline, options);
  uint64_t hash = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    while (const auto batch = loader.next()) {
      const TensorView& view = (*batch)["image"].view;
      const size_t bytes = size_t(view.elements()) * size_of(view.dtype);
      hash = content_hash({static_cast<const uint8_t*>(view.data), bytes}, hash);
    }
  }
  return hash;
}

struct Case {
  std::string name;
  std::vector<Spec> transforms;
  MemoryFormat format;
  uint64_t hash;
};

const int64_t kSize = 96;
const Spec kCrop{.name = "RandomResizedCrop", .arguments = {{"size", kSize}}};
const Spec kFlip{.name = "RandomHorizontalFlip"};
const Spec kNormalize{.name = "Normalize",
                      .arguments = {{"mean", std::vector<double>{0.485, 0.456, 0.406}},
                                    {"std", std::vector<double>{0.229, 0.224, 0.225}}}};
Spec to(DType dtype) {
  return {.name = "ToDtype", .arguments = {{"dtype", dtype}, {"scale", true}}};
}

const std::vector<Case> kCases = {
    {"training",
     {kCrop, kFlip, to(DType::kFloat32), kNormalize},
     MemoryFormat::kChannelsFirst,
     0x949ead277b5b28fa},
    {"half", {kCrop, kFlip, to(DType::kFloat16)}, MemoryFormat::kChannelsLast, 0xdbf1d28805de792f},
    {"bfloat16", {kCrop, to(DType::kBFloat16)}, MemoryFormat::kChannelsFirst, 0xee1e3536b807d21a},
    {"evaluation",
     {{.name = "Resize", .arguments = {{"size", kSize}, {"interpolation", std::string("bicubic")}}},
      {.name = "CenterCrop", .arguments = {{"size", kSize}}}},
     MemoryFormat::kChannelsLast,
     0xc4801fd2393adb0b},
    {"colors",
     {kCrop,
      {.name = "ColorJitter",
       .arguments = {{"brightness", 0.4}, {"contrast", 0.4}, {"saturation", 0.4}, {"hue", 0.1}}},
      {.name = "RandomGrayscale"},
      {.name = "GaussianBlur", .arguments = {{"kernel_size", int64_t{5}}}}},
     MemoryFormat::kChannelsFirst,
     0xfd5ea0c86645ea64},
    {"warps",
     {{.name = "RandomAffine",
       .arguments = {{"degrees", 30.0}, {"interpolation", std::string("bilinear")}}},
      {.name = "ElasticTransform"},
      {.name = "GaussianNoise"},
      {.name = "Resize", .arguments = {{"size", std::vector<int64_t>{kSize, kSize}}}}},
     MemoryFormat::kChannelsFirst,
     0x9902afad5cb0c3bb},
};

class SameEverywhere : public testing::TestWithParam<SimdForm> {
 protected:
  void SetUp() override { set_simd_form(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

TEST_P(SameEverywhere, EpochsHaveTheSameHashesOnAllMachines) {
  const fs::path pictures = example_pictures();
  if (pictures.empty()) GTEST_SKIP() << "not built within the checkout, where examples/ is";
  const SourcePtr source = open_source(pictures.string());
  for (const Case& one : kCases) {
    EXPECT_EQ(hash_of_epochs(source, one.transforms, one.format), one.hash) << one.name;
  }
}

std::string form_name(const testing::TestParamInfo<SimdForm>& info) {
  std::string name(name_of(info.param));
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Forms, SameEverywhere, testing::ValuesIn(available_forms()), form_name);

}  // namespace loader_same_everywhere_test
}  // namespace headrace
