// SPDX-License-Identifier: Apache-2.0
// Input of the two kernels of a resize: ResampleRows makes each row longer or shorter,
// ResampleColumns makes other rows. The plan decides which comes first (resize_batch.h).
#pragma once

#include <cstdint>

#include "headrace/base/host_device_function.h"
#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/batch/picture_layout.h"
#include "headrace/kernels/batch/resize_axis.h"

namespace headrace {

// A picture in a pass. Offsets and strides in bytes; the strides' `picture` is not used.
struct ResampleJob {
  int64_t from = 0, to = 0;  // the first sample
  PictureStrides from_strides = {}, to_strides = {};
  int32_t rows = 0, columns = 0;  // of the outcome
  int32_t samples = 0;            // of the input, along the axis
  uint32_t axis = 0;
  // Up to which column words may be stored; 0, where neighbors do not lie side by side or rows and
  // channels begin at no multiples of 8 bytes. More than `columns`, where room is left for it.
  int32_t in_words = 0;
  uint32_t fill = 0;  // of FillBorders: a byte a channel
};

// Up to 32 threads' work in a job.
struct ResamplePiece {
  uint32_t job, first;
};
inline constexpr int kResamplePiece = 32;

// How a pass finds its samples.
enum class SampleLayout : uint8_t {
  // Neighbors lie side by side, rows and channels begin multiples of 8 bytes apart. Across rows
  // moreover, there is a row more than any outcome of an odd number of rows is made of.
  kWords,
  kAny,
};

// Shared by both kernels.
struct ResamplePass {
  const ResampleJob* jobs = nullptr;
  const ResamplePiece* pieces = nullptr;  // [count]
  const ResizeAxis* axes = nullptr;
  const uint32_t* tables = nullptr;
  // Aligned to 8 bytes. From kWords, any 8 bytes that begin at a multiple of 8 and hold a sample of
  // the picture are read.
  const uint8_t* from = nullptr;
  uint8_t* to = nullptr;  // must not overlap `from`
  int64_t count = 0;
  int32_t channels = 1;

  HEADRACE_HD int64_t items() const { return count * kResamplePiece; }
};

// Stores what lies in the words' bytes, for columns x and following of a row.
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
