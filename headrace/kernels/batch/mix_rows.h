// SPDX-License-Identifier: Apache-2.0
// MixRows: mixes each picture of a finished batch in place with the previous picture of its group,
// like MixUp (blends) and CutMix (copies a rectangle; ops/batch/batch_mixing.h). The arithmetic is
// the same as on the host, so a batch has the same bits on every device.
#pragma once

#include <cstdint>

#include "headrace/base/dtype.h"
#include "headrace/base/host_device_function.h"
#include "headrace/kernels/batch/lanes.h"
#include "headrace/kernels/half.h"

namespace headrace {

// Two samples mixed as torch mixes tensors of their dtype: x.roll(1,
// 0).mul_(rest).add_(x.mul(own)), with each operation rounded to the dtype; bytes are computed in
// float32 and rounded to the nearest. `Form` converts between stored and arithmetic values.
template <class Form>
struct MixedFloats {
  using Stored = typename Form::Stored;
  HEADRACE_HD static Stored mix(Stored partner, Stored own_sample, float own, float rest) {
    const float theirs = rounded(Form::load(partner) * rest);
    return Form::store(theirs + rounded(Form::load(own_sample) * own));
  }

 private:
  HEADRACE_HD static float rounded(float value) { return Form::load(Form::store(value)); }
};

struct Float32Form {
  using Stored = float;
  HEADRACE_HD static float load(float value) { return value; }
  HEADRACE_HD static float store(float value) { return value; }
};
struct Float16Form {
  using Stored = uint16_t;
  HEADRACE_HD static float load(uint16_t value) { return float32_from_float16(value); }
  HEADRACE_HD static uint16_t store(float value) { return float16_from_float32(value); }
};
struct BFloat16Form {
  using Stored = uint16_t;
  HEADRACE_HD static float load(uint16_t value) { return float32_from_bfloat16(value); }
  HEADRACE_HD static uint16_t store(float value) { return bfloat16_from_float32(value); }
};

using MixedFloat32 = MixedFloats<Float32Form>;
using MixedFloat16 = MixedFloats<Float16Form>;
using MixedBFloat16 = MixedFloats<BFloat16Form>;

struct MixedBytes {
  using Stored = uint8_t;
  HEADRACE_HD static uint8_t mix(uint8_t partner, uint8_t own_sample, float own, float rest) {
    // never below 0 nor above 255
    const float mixed = static_cast<float>(partner) * rest + static_cast<float>(own_sample) * own;
    return static_cast<uint8_t>(mixed + 0.5f);
  }
};

// How one row changes: a rectangle of it is mixed with the same rectangle of the mixed-in row. An
// empty rectangle: unchanged.
struct RowMix {
  float own = 1, rest = 0;  // weights of the row's own samples and of the mixed-in row's
  int32_t top = 0, left = 0, bottom = 0, right = 0;
  int32_t copies = 0;  // 1: copies the mixed-in samples unchanged

  bool is_empty() const { return top >= bottom || left >= right; }
};

// Rows [first, first + count). Each is mixed with the one before it, the first with the last.
struct RowGroup {
  int32_t first = 0, count = 0;
};

struct MixRows {
  void* batch = nullptr;  // dense rows
  DType dtype = DType::kFloat32;
  // A picture is `lines` lines of `samples` samples. A line belongs to one plane (samples_of_pixel
  // = 1) or consists of interleaved pixels.
  int32_t height = 0, lines = 0, samples = 0, samples_of_pixel = 1;
  const RowGroup* groups = nullptr;  // [group_count]
  const RowMix* mixes = nullptr;     // by row of the batch
  int64_t group_count = 0;

  HEADRACE_HD int64_t items() const { return samples > 0 ? group_count * lines : 0; }

  HEADRACE_HD void operator()(int64_t item, Lane lane) const {
    switch (dtype) {
      case DType::kUInt8:
        return line<MixedBytes>(item, lane);
      case DType::kFloat16:
        return line<MixedFloat16>(item, lane);
      case DType::kBFloat16:
        return line<MixedBFloat16>(item, lane);
      default:
        return line<MixedFloat32>(item, lane);
    }
  }

 private:
  // Processes the same line of all rows of a group, from the last row to the first. An overwritten
  // row is then not needed again, except the last one, which the first row needs.
  template <class Mixed>
  HEADRACE_HD void line(int64_t item, Lane lane) const {
    using Stored = typename Mixed::Stored;
    const int64_t number = item / lines, at = item - number * lines;
    const RowGroup group = groups[number];
    const int32_t y = static_cast<int32_t>(at % height);
    const int64_t row_samples = int64_t{lines} * samples;
    Stored* const first =
        static_cast<Stored*>(batch) + group.first * row_samples + at * int64_t{samples};
    for (int32_t x = lane.number; x < samples; x += lane.count) {
      const Stored last = first[(group.count - 1) * row_samples + x];
      Stored mine = last;
      HEADRACE_ROLLED
      for (int32_t row = group.count - 1; row >= 0; --row) {
        const Stored partner = row > 0 ? first[(row - 1) * row_samples + x] : last;
        const RowMix& mix = mixes[group.first + row];
        if (mix.top <= y && y < mix.bottom && mix.left * samples_of_pixel <= x &&
            x < mix.right * samples_of_pixel) {
          first[row * row_samples + x] =
              mix.copies ? partner : Mixed::mix(partner, mine, mix.own, mix.rest);
        }
        mine = partner;
      }
    }
  }
};

}  // namespace headrace
