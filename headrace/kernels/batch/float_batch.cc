// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/float_batch.h"

#include <algorithm>
#include <string>

#include "headrace/base/error.h"

namespace headrace {
namespace {

const ErrorCode kBadMap{
    "HR0864", ErrorKind::kConfig, "unsupported conversion in a batch kernel",
    "On a device, float32, float16 and bfloat16 images are cast among these types and normalized, "
    "in at most four transforms, by a mean and a nonzero standard deviation per channel."};

void check_dtype(DType dtype) {
  if (dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16) return;
  raise(kBadMap,
        "dtype must be float32, float16 or bfloat16 (got " + std::string(name_of(dtype)) + ")");
}

void check_values(const char* name, std::span<const float> values) {
  if (!values.empty() && values.size() <= 4) return;
  raise(kBadMap, std::string(name) + " must have 1 to 4 values, one per channel (got " +
                     std::to_string(values.size()) + ")");
}

}  // namespace

FloatMap::FloatMap(DType input) : input_(input), output_(input) { check_dtype(input); }

FloatMap::Step& FloatMap::add_step() {
  if (steps_ == kMaxSteps) {
    raise(kBadMap, "a map has at most " + std::to_string(kMaxSteps) + " transforms",
          "run a second kernel");
  }
  Step& step = step_[steps_++];
  step.dtype = output_;
  return step;
}

FloatMap& FloatMap::convert(DType dtype) {
  check_dtype(dtype);
  if (dtype == output_) return *this;
  output_ = dtype;
  add_step();
  return *this;
}

FloatMap& FloatMap::normalize(std::span<const float> mean, std::span<const float> std) {
  check_values("mean", mean);
  check_values("std", std);
  if (std::ranges::find(std, 0.0f) != std.end()) raise(kBadMap, "std must not be zero");
  Step& step = add_step();
  step.normalizes = true;
  for (size_t c = 0; c < 4; ++c) {
    step.mean[c] = rounded_to(mean[std::min(c, mean.size() - 1)], output_);
    step.std[c] = rounded_to(std[std::min(c, std.size() - 1)], output_);
  }
  return *this;
}

}  // namespace headrace
