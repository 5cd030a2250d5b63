// SPDX-License-Identifier: Apache-2.0
// Value mappings of samples, per channel: a sequence of dtype conversions and normalizations.
//
// Maps are interned: each is made from identity() by a chain of steps, and equal chains give the
// same object, which is never freed. So a recipe only needs one pointer, and the table of all 256
// values per channel (evaluated step by step, with the reference's arithmetic) is computed once.
// Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/base/dtype.h"
#include "headrace/base/mutex.h"
#include "headrace/kernels/store.h"

namespace headrace {

// One step. `kConvert`: torchvision v2's to_dtype_image; `kNormalize`: its normalize_image.
struct MapStep {
  enum class Kind : uint8_t { kConvert, kNormalize } kind = Kind::kConvert;
  DType dtype = DType::kFloat32;  // kConvert
  bool scale = false;             // kConvert
  std::vector<float> mean, std;   // kNormalize; one per channel, or one for all
  bool divides = false;           // kConvert with `scale`: x / 255, like torchvision's to_tensor
  bool operator==(const MapStep&) const = default;
};

class PixelMap {
 public:
  // REQUIRES: uint8, uint16, float32, float16 or bfloat16. Throws HR0342 otherwise.
  static const PixelMap* identity(DType dtype);
  // This map followed by a step. Throws HR0342 for a dtype that pictures do not support, HR0343 for
  // a normalization of integers or a division by zero; operators check both when they are planned.
  const PixelMap* then(const MapStep& step) const;

  DType input() const { return input_; }
  DType output() const { return output_; }
  bool is_identity() const { return steps_.empty(); }
  const std::vector<MapStep>& steps() const { return steps_; }

  // For uint8 input: how to store a row of channel c (kernels/store.h).
  const StoreTable& table(int channel) const {
    return tables_[std::min(size_t(channel), tables_.size() - 1)];
  }
  // Maps one value of channel c, which is first rounded to the input dtype, with the reference's
  // arithmetic. This is the scalar reference.
  double value(double x, int channel) const;
  // The same for `count` values of one channel, in place.
  void apply(float* values, int count, int channel) const;

 private:
  struct Child;
  PixelMap(DType input, DType output, std::vector<MapStep> steps);
  ~PixelMap() = delete;  // lives as long as the process
  void make_tables();
  const PixelMap* child(const MapStep& step) const;

  DType input_, output_;
  std::vector<MapStep> steps_;
  std::vector<StoreTable> tables_;  // one per channel, or one for all channels
  // The maps that are one step longer, newest first. Read without the lock; prepended under the
  // lock.
  mutable Mutex mutex_;
  mutable std::atomic<const Child*> children_{nullptr};
};

// x rounded to this dtype, because torch does arithmetic on narrower floats in float32 and then
// rounds. For integers, x itself.
float rounded_to(float x, DType dtype);
// Writes one value to memory; narrower floats are rounded to nearest even. REQUIRES: a dtype that
// pictures support; for integers, a value in range.
void store_value(double value, DType dtype, void* to);
double load_value(DType dtype, const void* from);
// The same for `count` values that are `step` bytes apart.
void load_values(DType dtype, const void* from, ptrdiff_t step, int count, float* to);
void store_values(const float* from, int count, DType dtype, ptrdiff_t step, void* to);

}  // namespace headrace
