// SPDX-License-Identifier: Apache-2.0
// Per-sample maps, by channel: conversions and normalization, in sequence.
//
// Maps are interned: a map is reached from identity() by a chain of steps, equal chains give the
// same object, and it lives as long as the process. So a recipe holds one pointer, and the table of
// all 256 values per channel (evaluated step by step with the oracle's arithmetic) is made once.
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
  bool divides = false;           // kConvert that scales integers: x / 255, as its to_tensor has it
  bool operator==(const MapStep&) const = default;
};

class PixelMap {
 public:
  // REQUIRES: uint8, uint16, float32, float16 or bfloat16. HR0342 (thrown) otherwise.
  static const PixelMap* identity(DType dtype);
  // The map followed by the step. Throws HR0342 for a dtype that pictures do not have, HR0343 for a
  // normalization of integers or by zero; operators check both when they are planned.
  const PixelMap* then(const MapStep& step) const;

  DType input() const { return input_; }
  DType output() const { return output_; }
  bool is_identity() const { return steps_.empty(); }
  const std::vector<MapStep>& steps() const { return steps_; }

  // For uint8 input: how to store a row of channel c (kernels/store.h).
  const StoreTable& table(int channel) const {
    return tables_[std::min(size_t(channel), tables_.size() - 1)];
  }
  // One value of channel c, rounded to the input's dtype, through all steps, with the oracle's
  // arithmetic; the scalar reference.
  double value(double x, int channel) const;
  // The same of `count` values of one channel, in place.
  void apply(float* values, int count, int channel) const;

 private:
  struct Child;
  PixelMap(DType input, DType output, std::vector<MapStep> steps);
  ~PixelMap() = delete;  // lives as long as the process
  void make_tables();
  const PixelMap* child(const MapStep& step) const;

  DType input_, output_;
  std::vector<MapStep> steps_;
  std::vector<StoreTable> tables_;  // one for each channel that differs, or for all
  // The maps one step further, newest first: read without the lock, prepended under it.
  mutable Mutex mutex_;
  mutable std::atomic<const Child*> children_{nullptr};
};

// x rounded to this dtype, as torch does float arithmetic on any floating dtype:
// in float32, then rounded. Integers: x itself.
float rounded_to(float x, DType dtype);
// The bits of one value in memory: rounds to nearest even where the dtype is narrower.
// REQUIRES: a picture's dtype; of integers, a value in their range.
void store_value(double value, DType dtype, void* to);
double load_value(DType dtype, const void* from);
// The same of `count` values, from one to the next `step` bytes.
void load_values(DType dtype, const void* from, ptrdiff_t step, int count, float* to);
void store_values(const float* from, int count, DType dtype, ptrdiff_t step, void* to);

}  // namespace headrace
