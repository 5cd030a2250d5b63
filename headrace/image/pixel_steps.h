// SPDX-License-Identifier: Apache-2.0
// Computations on an image's pixels, each pixel from its own samples: colors and tables.
//
// A recipe holds a few such steps as data. Rendering runs them over rows while these are in the
// first-level cache, between resampling and store, so they cost no pass over the picture of their
// own. A step's function is a PixelFunction, a constant in the file of its operator; the numbers
// stored with it are its parameters for this record. Anything that needs more than one pixel (a
// mean, neighbors) is measured beforehand on rendered pixels, and passed as a number
// (ops/pixel_op.h).
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
#include "headrace/kernels/color/table_form.h"

namespace headrace {

struct PixelStep;

// Pure functions on rows of planes, one plane per channel. `in` and `out` do not overlap.
struct PixelFunction {
  // Channels that come out where `in` come in, 1 to 4; 0: it does not take so many.
  int (*channels)(const PixelStep& step, int in);
  // May read and write up to 63 bytes past `count` samples of each row.
  void (*bytes)(const PixelStep& step, const uint8_t* const in[], int channels, int count,
                uint8_t* const out[]);
  // The same for pictures of float32. Null: they are refused when the operator is planned, as those
  // of narrower floats always are (torch rounds these differently from one of its loops to the
  // next).
  void (*floats)(const PixelStep& step, const float* const in[], int channels, int count,
                 float* const out[]);
  // The kernel's form of it, of bytes, with the same values. kNone: no device has it.
  PixelCode code = PixelCode::kNone;
};

// Maps each value of a channel; a picture of one channel has the first.
struct ColorTable {
  std::array<std::array<uint8_t, 256>, 3> of{};
  std::array<TableGuess, 3> guess{};  // guessed form of each, which may be wrong
};

// A table, and in which form each of its channels is quickest.
struct QuickTable : ColorTable {
  explicit QuickTable(const ColorTable& table);
  std::array<TableForm, 3> form;
};

struct PixelStep {
  const PixelFunction* function = nullptr;
  std::array<float, 6> values{};  // meaning defined by the function
  // shared: recipes are copied. Of a step that is a table and nothing else (table_step).
  std::shared_ptr<const QuickTable> table = {};
};

// Maps each sample by its channel's table; for pictures of one or three channels of 8 bits.
PixelStep table_step(const ColorTable& table);
// The same, of a function that is a table for bytes and computes floats by `values`:
PixelStep table_step(const ColorTable& table, const PixelFunction& function,
                     const std::array<float, 6>& values);
// its other parts.
int table_channels(const PixelStep& step, int in);
void look_up_bytes(const PixelStep& step, const uint8_t* const in[], int channels, int count,
                   uint8_t* const out[]);

// Up to kMost steps, in order. A value: recipes are copied.
class PixelSteps {
 public:
  static constexpr int kMost = 8;

  bool empty() const { return steps_.empty(); }
  std::span<const PixelStep> all() const { return steps_; }
  bool are_coded() const;  // each of them, for a device
  // False, and nothing is changed, when there is no room. Two tables in a row become one.
  bool add(const PixelStep& step);
  // Where the last step is a table of bytes: that, and the steps without it.
  std::shared_ptr<const QuickTable> last_table() const {
    return steps_.empty() ? nullptr : steps_.back().table;
  }
  void drop_last() { steps_.pop_back(); }
  // Number of output channels for `in` input channels.
  int channels(int in) const;

  // Runs all steps over a row; returns the planes that came out, which lie in `scratch` (or are
  // `in` where there is no step). REQUIRES: kScratchPlanes planes of `plane` bytes there, each with
  // 63 bytes beyond `count`.
  using Planes = std::array<const uint8_t*, kMostChannels>;
  static constexpr int kScratchPlanes = 8;
  Planes run(const Planes& in, int channels, int count, uint8_t* scratch, ptrdiff_t plane) const;

  // The same for rows of float32. REQUIRES: scratch for kScratchPlanes * count of them.
  using FloatPlanes = std::array<const float*, kMostChannels>;
  FloatPlanes run(const FloatPlanes& in, int channels, int count, float* scratch) const;

  // One pixel: what becomes of a border's fill. `dtype`: of the picture.
  ChannelValues of_pixel(const ChannelValues& pixel, DType dtype, int channels) const;

 private:
  std::vector<PixelStep> steps_;  // most recipes have none, and stay small
};

}  // namespace headrace
