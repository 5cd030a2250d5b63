// SPDX-License-Identifier: Apache-2.0
// Plans an antialiased resize of a batch of 8-bit pictures to one size: what is uploaded, and the
// two passes. Equal to Pillow's Image.resize of each window by itself, byte for byte.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/kernels/batch/picture_layout.h"
#include "headrace/kernels/batch/resample_pass.h"
#include "headrace/kernels/resample/filter.h"

namespace headrace {

// What is resized: a rectangle of a picture, which counts as a picture of its own.
struct ResizeWindow {
  int64_t from = 0;               // bytes from the pictures' address to its first sample
  PictureStrides strides = {};    // bytes; `picture` is not used
  int32_t height = 0, width = 0;  // at least 1
  bool flip = false;              // the outcome is mirrored left to right
  // Where the batch shows a part of what the window becomes: of which size that is, and where in it
  // the part begins. 0: it is of the batch's size. The part alone is computed, and of the window
  // only what it reads is looked at, so `from` may lie outside of what there is.
  int32_t to_height = 0, to_width = 0, top = 0, left = 0;
};

struct ResizeTo {
  Filter filter = Filter::kBilinear;
  int32_t channels = 3, height = 0, width = 0;
  PictureStrides strides = {};  // bytes, of the batch
};

// To be copied to where the kernels run: jobs and tables.
struct ResizePlan {
  std::vector<ResampleJob> first, second;  // a job for each window
  std::vector<int32_t> tables;             // axes of equal sizes share one
  int64_t scratch_bytes = 0;               // between the passes
  int32_t channels = 0;
  int32_t first_rows = 0, second_rows = 0;  // the most of any job

  // The passes, in this order. The addresses are those of the copies.
  ResamplePass first_pass(const ResampleJob* jobs, const int32_t* tables, const uint8_t* pictures,
                          uint8_t* scratch) const;
  ResamplePass second_pass(const ResampleJob* jobs, const int32_t* tables, const uint8_t* scratch,
                           uint8_t* batch) const;
};

// Throws Exception HR0863 where a size is not positive or there are no channels.
ResizePlan plan_resize(const ResizeTo& to, std::span<const ResizeWindow> windows);

}  // namespace headrace
