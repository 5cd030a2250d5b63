// SPDX-License-Identifier: Apache-2.0
// Resampling of 8-bit planes, equal to Pillow's Image.resize byte for byte.
//
// Two passes with 22-bit fixed-point weights and an 8-bit intermediate. The caller chooses the
// order of the passes with vertical_first(); flips and ranges are edits of the tables and cost
// nothing. Wider samples: kernels/resample/resample_wide.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/resample/filter.h"

namespace headrace {

// The version of Pillow whose pass order we follow; see Note [Pass order] in resample.cc.
inline constexpr int kPillowMajor = 13;
// Whether the vertical pass comes first when a whole width x height picture is resized to to_width
// x to_height and both axes change. torch, which defines the filters without antialiasing, always
// does the horizontal pass first.
bool vertical_first(Filter filter, int width, int height, int to_width, int to_height);

// The filter at x. The weight of tap t is filter_weight((t + first - center + 0.5) * inverse),
// divided by the sum of the output's weights.
double filter_weight(Filter filter, double x);
// The input sample of each output: Pillow accumulates coordinates, torch computes them in float32.
// REQUIRES: is_nearest(filter).
std::vector<int32_t> nearest_samples(Filter filter, int input, int output);

// The tables of one axis, in the layout that a SIMD level's kernels read. Output i of the axis is
// clip((2^21 + sum_t weights[t][i] * in[first[i] + t]) >> 22), t < count[i].
struct ResampleTables {
  static constexpr int kLanes = 16;  // outputs are padded to a multiple of it
  // How the horizontal kernel loads its samples; limits depend on the level.
  enum class Reach : uint8_t {
    kHalfWindow,  // the samples of a group of outputs fit in half a vector; at most four taps
    kWindow,      // fit in one vector
    kWideWindow,  // fit in two vectors
    kLong,        // many taps: one output at a time, vectorized over taps
    kAny,         // a scalar loop
  };
  int outputs = 0, padded = 0;
  int taps = 0;     // maximum number of taps of any output, rounded up to a multiple of 4
  int samples = 0;  // input samples that are read: high - low
  std::vector<int32_t> first, count;  // padded with the last output's first, and 0
  std::vector<int32_t> weights;       // [taps][padded], zero past an output's count
  Reach reach = Reach::kAny;
  int pairs = 0;              // maximum pairs of taps of an output; only if a SIMD level needs it
  int long_taps = 0;          // kLong: bytes or words stored per output
  std::vector<int32_t> base;  // by group: start of its window
  Buffer indices, digits;     // a SIMD level's own format of first and weights
};

// One axis of a resize. Reused from picture to picture; not thread-safe.
class ResampleAxis {
 public:
  // The full resize input -> output, of which only outputs [begin, end) are computed, optionally
  // mirrored.
  // flip_input: as if the input had been mirrored. flip_output: the outputs are stored mirrored
  // (the range is applied before mirroring). REQUIRES: 0 <= begin < end <= output, input > 0.
  void make(Filter filter, int input, int output, int begin, int end, bool flip_input,
            bool flip_output);

  int outputs() const { return tables_.outputs; }
  int low() const { return low_; }  // range of input samples needed: [low, high)
  int high() const { return high_; }
  // input == output: Pillow skips the pass. Output i is input low + i, or high - 1 - i if mirrored.
  bool copies() const { return copies_; }
  bool mirrored() const { return mirrored_; }
  // Inputs of output i, counted from low(): [first, first + count). Both ends increase with i, or
  // decrease if descending().
  int first(int i) const { return tables_.first[i]; }
  int count(int i) const { return tables_.count[i]; }
  int max_count() const { return max_count_; }
  // In units of 2^-22, of input first(i) + tap. REQUIRES: !copies(), tap < count(i).
  int32_t weight(int i, int tap) const { return tables_.weights[size_t(tap) * tables_.padded + i]; }
  bool descending() const { return descending_; }
  // Output i is a copy of its single input.
  bool is_copy(int i) const { return tables_.count[i] == 1 && tables_.weights[i] == 1 << 22; }

  // One row of each channel: in[c] holds samples [low, high); the outputs of channel c are written
  // at out + c * plane. Reads up to 64 bytes past a row's end; writes up to padded_outputs() per
  // channel. REQUIRES: !copies(), 1 <= channels <= 4.
  void horizontal(const uint8_t* const in[], int channels, uint8_t* out, ptrdiff_t plane) const;
  // Output row i from its input rows: rows[t] is row first(i) + t for t < count(i), and any
  // readable row for t < row_pointers(). `bytes` is rounded up to a multiple of 64.
  void vertical(int i, const uint8_t* const rows[], int bytes, uint8_t* out) const;

  int padded_outputs() const { return tables_.padded; }
  int row_pointers() const { return tables_.taps; }
  size_t held_bytes() const;

 private:
  void place_outputs(const FilterScale& scale, int begin, bool reversed);
  void set_interpolation_weights(Filter filter, int input, int output, int begin, bool reversed);
  void place_nearest(Filter filter, int input, int output, int begin, bool reversed);
  void mirror_inputs(int input);
  void trim_to_used();

  ResampleTables tables_;
  std::vector<double> centers_, scratch_;
  SimdLevel level_ = SimdLevel::kScalar;  // of the tables
  int low_ = 0, high_ = 0, max_count_ = 0;
  bool copies_ = false, mirrored_ = false, descending_ = false;
};

}  // namespace headrace
