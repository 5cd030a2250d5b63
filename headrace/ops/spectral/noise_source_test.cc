// SPDX-License-Identifier: Apache-2.0
// The records of a noise dataset may differ from its schema. tests/test_noise_source.py tests that
// the right noises are used.
#include "headrace/ops/spectral/noise_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace headrace {
namespace {

// One record with this many samples, regardless of its schema.
class OneNoise final : public Source {
 public:
  OneNoise(Shape said, Shape of_record, size_t samples)
      : of_record_(std::move(of_record)), samples_(samples) {
    schema_ = {{.name = "noise",
                .kind = FieldKind::kAudio,
                .dtype = DType::kFloat32,
                .shape = std::move(said)}};
  }
  int64_t size() const override { return 1; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kMemory; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    out[0].index = indices[0];
    out[0].owned.resize(1);
    out[0].owned[0].resize(samples_ * sizeof(float));
    std::fill_n(reinterpret_cast<float*>(out[0].owned[0].data()), samples_, 0.5f);
    out[0].fields.assign(1, {.bytes = out[0].owned[0].bytes(), .shape = of_record_});
  }
  std::string key(int64_t) const override { return "it"; }
  uint64_t fingerprint() const override { return 1; }
  std::string description() const override { return "a noise"; }

 private:
  const Shape of_record_;
  const size_t samples_;
  Schema schema_;
};

std::string taken(Shape said, Shape of_record, size_t samples) {
  const NoiseSource noises(
      "AddNoise", std::make_shared<OneNoise>(std::move(said), std::move(of_record), samples));
  Renderer renderer;
  const Result<Noise> noise = noises.take(0, {.frames = 8, .place = 0.9}, renderer);
  if (!noise) return std::string(noise.error().code->id);
  return std::to_string(std::count(noise->samples, noise->samples + 8, 0.5f));
}

TEST(Noise, OfUnexpectedShapeIsAnError) {
  EXPECT_EQ(taken({1, 100}, {}, 100), "8");
  EXPECT_EQ(taken({1, -1}, {1, 100}, 100), "8");
  EXPECT_EQ(taken({1, 100000}, {}, 100), "HR0120");
  EXPECT_EQ(taken({1, -1}, {}, 100), "HR0120");
  EXPECT_EQ(taken({1, -1}, {1, 100000}, 100), "HR0120");
  EXPECT_EQ(taken({1, -1}, {2, 50}, 100), "HR0120");
  EXPECT_EQ(taken({1, -1}, {100}, 100), "HR0120");
}

}  // namespace
}  // namespace headrace
