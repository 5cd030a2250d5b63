// SPDX-License-Identifier: Apache-2.0
// Shared by passes over single pictures of a batch (SharpenPictures, BlurPictures, WarpPictures). A
// pass reads 8-bit planes and writes other planes; pictures may have any sizes. A picture without a
// job in a pass is not changed, and later stages read it from its old position.
#pragma once

#include <cstdint>

#include "headrace/base/host_device_function.h"
#include "headrace/kernels/batch/machine_words.h"

namespace headrace {

// A picture in a pass. Offsets and distances in bytes; columns are adjacent. If all of them are
// multiples of four, words are loaded and stored, which may read up to three bytes past a row.
struct PassPlanes {
  int64_t from = 0, to = 0;              // of the first sample, relative to the pass's addresses
  int64_t from_plane = 0, to_plane = 0;  // from one channel to the next
  int32_t from_row = 0, to_row = 0;      // and from one row to the next
  int32_t height = 0, width = 0;         // of the output
  int32_t channels = 0;                  // 1 to 4

  HEADRACE_HD bool reads_words() const { return ((from | from_plane | from_row) & 3) == 0; }
  HEADRACE_HD bool stores_words() const { return ((to | to_plane | to_row) & 3) == 0; }
};

// Jobs, and the units of work of each: job j has the units [starts[j], starts[j + 1]).
template <class Job>
struct PassJobs {
  const Job* jobs = nullptr;         // [count]
  const uint32_t* starts = nullptr;  // [count + 1]
  int32_t count = 0;
  uint32_t units = 0;  // starts[count]

  HEADRACE_HD int32_t job_of(uint32_t unit) const {
    int32_t low = 0, end = count;
    HEADRACE_ROLLED
    while (end - low > 1) {
      const int32_t middle = (low + end) >> 1;
      if (starts[middle] <= unit) {
        low = middle;
      } else {
        end = middle;
      }
    }
    return low;
  }
};

// Unit size for passes with one thread per item: the threads of a warp, so that a whole warp works
// on the same job.
inline constexpr int kPassWarp = 32;
HEADRACE_HD inline uint32_t pass_warps(int64_t threads) {
  return static_cast<uint32_t>((threads + kPassWarp - 1) / kPassWarp);
}

// Loads, or stores, four samples of a row, starting at column x, a multiple of four. `words`: whole
// words may be accessed; otherwise only columns below `width`.
HEADRACE_HD inline uint32_t load_four(const uint8_t* row, int32_t x, int32_t width, bool words) {
  if (words) return words::load<1>(row + x).word[0];
  uint32_t four = 0;
  HEADRACE_UNROLLED
  for (int i = 0; i < 4; ++i) {
    if (x + i < width) four |= uint32_t{row[x + i]} << 8 * i;
  }
  return four;
}
HEADRACE_HD inline void store_four(uint8_t* row, int32_t x, int32_t width, bool words,
                                   uint32_t four) {
  if (words && x + 4 <= width) return words::store<1>(row + x, {{four}});
  HEADRACE_UNROLLED
  for (int i = 0; i < 4; ++i) {
    if (x + i < width) row[x + i] = static_cast<uint8_t>(four >> 8 * i);
  }
}

}  // namespace headrace
