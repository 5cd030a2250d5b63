// SPDX-License-Identifier: Apache-2.0
// Input of the two kernels of a resize: ResampleRows changes the width of each row, ResampleColumns
// the number of rows. The plan decides which comes first (resize_batch.h).
#pragma once

#include <cstdint>

#include "headrace/base/host_device_function.h"
#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/batch/picture_layout.h"
#include "headrace/kernels/batch/resize_axis.h"

namespace headrace {

// One picture in a pass. Offsets and strides are in bytes; PictureStrides::picture is not used.
struct ResampleJob {
  int64_t from = 0, to = 0;  // the first sample
  PictureStrides from_strides = {}, to_strides = {};
  int32_t rows = 0, columns = 0;  // of the output
  int32_t samples = 0;            // of the input, along the axis
  uint32_t axis = 0;
  // Words may be stored up to this column; 0 if neighbors are not adjacent, or rows and channels
  // are not aligned to 8 bytes. More than `columns` if the buffer has room for it.
  int32_t in_words = 0;
  uint32_t fill = 0;  // FillBorders: one byte per channel
};

// The work of up to 32 threads on a job.
struct ResamplePiece {
  uint32_t job, first;
};
inline constexpr int kResamplePiece = 32;

// How a pass addresses its samples.
enum class SampleLayout : uint8_t {
  // Neighbors are adjacent, and strides of rows and channels are multiples of 8 bytes. Across rows,
  // there is also one more row than any output with an odd number of input rows needs.
  kWords,
  kAny,
};

// Shared by both kernels.
struct ResamplePass {
  const ResampleJob* jobs = nullptr;
  const ResamplePiece* pieces = nullptr;  // [count]
  const ResizeAxis* axes = nullptr;
  const uint32_t* tables = nullptr;
  // Aligned to 8 bytes. For kWords, any aligned 8 bytes that contain a sample of the picture may be
  // read.
  const uint8_t* from = nullptr;
  uint8_t* to = nullptr;  // must not overlap `from`
  int64_t count = 0;
  int32_t channels = 1;

  HEADRACE_HD int64_t items() const { return count * kResamplePiece; }
};

// Stores the words' bytes to columns x and following of a row.
template <int count>
class OutcomeStore {
 public:
  HEADRACE_HD OutcomeStore(const ResampleJob& job, int32_t x)
      : left_(job.columns - x < 4 * count ? job.columns - x : 4 * count),
        in_words_(x + 4 * count <= job.in_words),
        step_(job.to_strides.column) {}

  HEADRACE_HD void operator()(uint8_t* to, const words::Together<count>& outcomes) const {
    if (in_words_) return words::store(to, outcomes);
    HEADRACE_ROLLED
    for (int32_t i = 0; i < left_; ++i, to += step_) {
      const uint32_t word = count > 1 && i >= 4 ? outcomes.word[count - 1] : outcomes.word[0];
      *to = static_cast<uint8_t>(word >> 8 * (i & 3));
    }
  }

 private:
  int32_t left_;
  bool in_words_;
  int64_t step_;
};

}  // namespace headrace
