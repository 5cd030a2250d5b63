// SPDX-License-Identifier: Apache-2.0
// FloatBatch: casts, normalizes and lays out pictures that are already floats (8-bit pictures go
// through tables: picture_batch.h). Each operation is done in float32 and rounded to the picture's
// current dtype, like torchvision v2's functions, so the bits are PixelMap's on every device:
// multiply-adds are not fused, division is rounded correctly, and subnormals are kept.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/dtype.h"
#include "headrace/base/host_device_function.h"
#include "headrace/kernels/batch/lanes.h"
#include "headrace/kernels/batch/picture_layout.h"
#include "headrace/kernels/half.h"

namespace headrace {

// A value rounded to a floating dtype.
HEADRACE_HD inline float rounded_to(float x, DType dtype) {
  if (dtype == DType::kFloat16) return float32_from_float16(float16_from_float32(x));
  if (dtype == DType::kBFloat16) return float32_from_bfloat16(bfloat16_from_float32(x));
  return x;
}

// The operations on each value, in order. Passed by value as part of the kernel.
class FloatMap {
 public:
  static constexpr int kMaxSteps = 4;

  // Throws Exception HR0864 unless the dtypes are float32, float16 or bfloat16.
  explicit FloatMap(DType input);
  FloatMap& convert(DType dtype);
  // (x - mean) / std, with one value per channel or one for all. Throws HR0864 for zero or more
  // than four values, a std of zero, or a fifth operation.
  FloatMap& normalize(std::span<const float> mean, std::span<const float> std);

  HEADRACE_HD DType input() const { return input_; }
  HEADRACE_HD DType output() const { return output_; }

  HEADRACE_HD float operator()(float x, int channel) const {
    for (int i = 0; i < steps_; ++i) {
      const Step& step = step_[i];
      if (step.normalizes) {
        x = rounded_to(x - step.mean[channel], step.dtype) / step.std[channel];
      }
      x = rounded_to(x, step.dtype);
    }
    return x;
  }

 private:
  // `dtype` is the output's; mean and std are rounded to it.
  struct Step {
    bool normalizes = false;
    DType dtype = DType::kFloat32;
    float mean[4] = {}, std[4] = {};
  };
  Step& add_step();

  DType input_, output_;
  int steps_ = 0;
  Step step_[kMaxSteps];
};

struct FloatBatch {
  const void* pictures = nullptr;
  PictureStrides from = {};
  void* batch = nullptr;  // does not overlap the pictures; or is the same memory, and strides and
                          // element sizes are equal
  PictureStrides to = {};
  int64_t count = 0;
  int32_t channels = 1, height = 0, width = 0;  // 1 to 4 channels
  FloatMap map{DType::kFloat32};

  HEADRACE_HD int64_t items() const { return count * height; }

  HEADRACE_HD void operator()(int64_t item, Lane lane) const {
    const int64_t i = item / height, y = item - i * height;
    for (int c = 0; c < channels; ++c) {
      const int64_t origin = i * from.picture + y * from.row + c * from.channel;
      const int64_t to_origin = i * to.picture + y * to.row + c * to.channel;
      for (int64_t x = lane.number; x < width; x += lane.count) {
        store(map(load(origin + x * from.column), c), to_origin + x * to.column);
      }
    }
  }

 private:
  HEADRACE_HD float load(int64_t at) const {
    if (map.input() == DType::kFloat32) return static_cast<const float*>(pictures)[at];
    const uint16_t bits = static_cast<const uint16_t*>(pictures)[at];
    return map.input() == DType::kFloat16 ? float32_from_float16(bits)
                                          : float32_from_bfloat16(bits);
  }

  HEADRACE_HD void store(float x, int64_t at) const {
    if (map.output() == DType::kFloat32) {
      static_cast<float*>(batch)[at] = x;
    } else {
      static_cast<uint16_t*>(batch)[at] =
          map.output() == DType::kFloat16 ? float16_from_float32(x) : bfloat16_from_float32(x);
    }
  }
};

}  // namespace headrace
