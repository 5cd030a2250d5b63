// SPDX-License-Identifier: Apache-2.0
// Computations on an image's pixels that need only the samples of the same pixel: color operators
// and lookup tables.
//
// A recipe holds a few such steps as data. Rendering applies them to rows in the L1 cache, between
// resampling and store, so they do not need a separate pass over the picture. A step's function is
// a PixelFunction, a constant that is defined in the file of its operator; the step also has its
// parameters for this record. A value that depends on more than one pixel (a mean) is measured
// beforehand on rendered pixels, and passed as a parameter (ops/pixel_op.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/base/dtype.h"
#include "headrace/image/picture.h"
#include "headrace/kernels/batch/pixel_program.h"
#include "headrace/kernels/color/table_rows.h"

namespace headrace {

struct PixelStep;

// Pure functions on rows of planes, one plane per channel. `in` and `out` do not overlap.
struct PixelFunction {
  // Number of output channels for `in` input channels, 1 to 4; 0 if it does not support that
  // number.
  int (*channels)(const PixelStep& step, int in);
  // May read and write up to 63 bytes past `count` samples of each row.
  void (*bytes)(const PixelStep& step, const uint8_t* const in[], int channels, int count,
                uint8_t* const out[]);
  // The same for float32 pictures. Null: these are rejected when the operator is planned. Narrower
  // floats are always rejected, because torch's loops differ in how they round them.
  void (*floats)(const PixelStep& step, const float* const in[], int channels, int count,
                 float* const out[]);
  // The instruction of device kernels that computes the same for bytes; kNone if there is none.
  PixelCode code = PixelCode::kNone;
};

// A lookup table per channel; pictures of one channel use the first.
struct ColorTable {
  std::array<std::array<uint8_t, 256>, 3> of{};
  std::array<TableGuess, 3> guess{};  // the form that each table probably has
};

// A lookup table, with the fastest form of each channel.
struct QuickTable : ColorTable {
  explicit QuickTable(const ColorTable& table);
  std::array<TableForm, 3> form;
};

struct PixelStep {
  const PixelFunction* function = nullptr;
  std::array<float, 6> values{};  // meaning defined by the function
  // The table, if the step is a table (table_step). Shared, because recipes are copied.
  std::shared_ptr<const QuickTable> table = {};
};

// A step that maps each sample by its channel's table; for 8-bit pictures of one or three channels.
PixelStep table_step(const ColorTable& table);
// The same for a function that uses a table for bytes, and computes floats by `values`. The
// function's other members are table_channels and look_up_bytes.
PixelStep table_step(const ColorTable& table, const PixelFunction& function,
                     const std::array<float, 6>& values);
int table_channels(const PixelStep& step, int in);
void look_up_bytes(const PixelStep& step, const uint8_t* const in[], int channels, int count,
                   uint8_t* const out[]);

// Up to kMax steps, in order. A value: recipes are copied.
class PixelSteps {
 public:
  static constexpr int kMax = 8;

  bool empty() const { return steps_.empty(); }
  std::span<const PixelStep> all() const { return steps_; }
  bool are_coded() const;  // whether all of them have device code
  // Appends a step; two consecutive tables become one. Returns false, and changes nothing, if there
  // are kMax steps already.
  bool add(const PixelStep& step);
  // The last step, if it is a lookup table for bytes, and the steps without it.
  std::shared_ptr<const QuickTable> last_table() const {
    return steps_.empty() ? nullptr : steps_.back().table;
  }
  void drop_last() { steps_.pop_back(); }
  // Number of output channels for `in` input channels.
  int channels(int in) const;

  // Runs all steps on a row. Returns the output planes, which are in `scratch` (or are `in` if
  // there are no steps). REQUIRES: `scratch` has room for kScratchPlanes planes of `plane` bytes,
  // with 63 bytes past `count` in each.
  using Planes = std::array<const uint8_t*, kMaxChannels>;
  static constexpr int kScratchPlanes = 8;
  Planes run(const Planes& in, int channels, int count, uint8_t* scratch, ptrdiff_t plane) const;

  // The same for float32 rows. REQUIRES: scratch has room for kScratchPlanes * count floats.
  using FloatPlanes = std::array<const float*, kMaxChannels>;
  FloatPlanes run(const FloatPlanes& in, int channels, int count, float* scratch) const;

  // Applies the steps to one pixel, a border's fill. `dtype`: of the picture.
  ChannelValues of_pixel(const ChannelValues& pixel, DType dtype, int channels) const;

 private:
  std::vector<PixelStep> steps_;  // most recipes have none, and stay small
};

}  // namespace headrace
