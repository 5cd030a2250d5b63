// SPDX-License-Identifier: Apache-2.0
// Plans an antialiased resize of a batch of 8-bit pictures to one size, and queues its kernels:
//
//   MakeResizeTables  a thread per output of an axis   sizes -> positions and weights
//   ResampleRows      a thread per four columns        the passes, in either order
//   ResampleColumns   a thread per eight columns
//   FillBorders       a thread per eight columns       if pictures of the batch have borders
//
// Equal to Pillow's Image.resize of each window by itself (torch's filters: to torch), byte for
// byte. Only sizes are copied to the device, and weights only for filters whose weights are not
// polynomials (resize_axis.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/kernels/batch/fill_borders.h"
#include "headrace/kernels/batch/picture_layout.h"
#include "headrace/kernels/batch/resample_columns.h"
#include "headrace/kernels/batch/resample_job.h"
#include "headrace/kernels/batch/resample_rows.h"
#include "headrace/kernels/batch/resize_axis.h"
#include "headrace/kernels/resample/filter.h"

namespace headrace {

// A window to resize: a rectangle of a picture, treated as a picture of its own. Fast if column
// strides are 1 or -1 and row and channel strides are multiples of 8.
struct ResizeWindow {
  int64_t from = 0;               // bytes from the pictures' address to its first sample
  PictureStrides strides = {};    // bytes; `picture` is not used
  int32_t height = 0, width = 0;  // at least 1
  bool flip = false;              // the output is mirrored left to right
  bool upside_down = false;       // and mirrored top to bottom
  // The part of the resized window that the batch shows: its size, and its position before
  // mirroring. 0: the batch's size. Only this part is computed and only the samples it depends on
  // are read, so `from` may point outside the available samples.
  int32_t to_height = 0, to_width = 0, top = 0, left = 0;
  // If the batch's picture has a border: the size of the part inside it (0: no border), its
  // position in the batch's picture after mirroring, and the border's value by channel.
  int32_t shown_height = 0, shown_width = 0, at_top = 0, at_left = 0;
  bool border_alone = false;  // shows nothing of the window
  std::array<uint8_t, 4> fill{};
};

struct ResizeTo {
  Filter filter = Filter::kBilinear;
  int32_t channels = 3, height = 0, width = 0;
  PictureStrides strides = {};  // bytes, of the batch
};

// Work items by kind.
struct ResamplePieces {
  std::array<std::vector<ResamplePiece>, 2> rows, columns;  // by SampleLayout
};

struct ResizePlan {
  int32_t channels = 0;
  std::vector<ResizeAxis> axes;   // shared by windows of equal sizes
  std::vector<int32_t> made;      // weights that the host computed: ResizeAxis::made
  std::vector<ResampleJob> jobs;  // of passes and borders
  ResamplePieces first, second;   // of the passes
  std::vector<ResamplePiece> borders;
  int64_t table_words = 0;    // of all axes
  int64_t between_bytes = 0;  // the intermediate pictures between the passes
  int32_t max_outputs = 0;    // of any axis
};

inline constexpr int32_t kMaxResizedSide = 1 << 16;
// Throws Exception HR0863 if a size is not positive, there are no channels, a rectangle is outside
// its picture, or a side has more than kMaxResizedSide pixels.
ResizePlan plan_resize(const ResizeTo& to, std::span<const ResizeWindow> windows);
// Upper bound on the bytes of weights that the host makes for one window. REQUIRES: all of its
// sizes are set.
int64_t made_bytes(const ResizeTo& to, const ResizeWindow& window);

// Bytes prepared by the host, and device scratch bytes; each is one block of memory.
int64_t upload_bytes(const ResizePlan& plan);
int64_t scratch_bytes(const ResizePlan& plan);
void write(const ResizePlan& plan, uint8_t* upload);

// The addresses of everything that the kernels use. `upload` and `scratch` are aligned to 256
// bytes, pictures and batch to 8. The pictures' memory is readable up to a multiple of 8 bytes.
struct ResizeMemory {
  const uint8_t* upload = nullptr;  // a copy of what write() wrote
  uint8_t* scratch = nullptr;
  const uint8_t* pictures = nullptr;
  uint8_t* batch = nullptr;
};
void queue_resize(Stream& stream, const ResizePlan& plan, const ResizeMemory& at);

// The arrays in these blocks.
struct ResizeSections {
  const ResizeAxis* axes = nullptr;
  const int32_t* made = nullptr;
  const ResampleJob* jobs = nullptr;
  // First pass, second pass; rows, columns; by layout. Then borders.
  std::array<const ResamplePiece*, 9> pieces{};
  uint32_t* tables = nullptr;
  uint8_t* between = nullptr;
};
ResizeSections sections_of(const ResizePlan& plan, const ResizeMemory& at);

// Calls run(kernel) with each kernel, in order.
template <class Run>
void for_each_kernel(const ResizePlan& plan, const ResizeMemory& at, Run&& run) {
  const ResizeSections sections = sections_of(plan, at);
  run(MakeResizeTables{.axes = sections.axes,
                       .made = sections.made,
                       .tables = sections.tables,
                       .count = int64_t(plan.axes.size()),
                       .max_outputs = plan.max_outputs});
  if (!plan.borders.empty()) {  // fills whole pictures with the border; the passes then overwrite
                                // what is shown
    FillBorders kernel;
    static_cast<ResamplePass&>(kernel) = {.jobs = sections.jobs,
                                          .pieces = sections.pieces[8],
                                          .to = at.batch,
                                          .count = int64_t(plan.borders.size()),
                                          .channels = plan.channels};
    run(kernel);
  }
  const auto pass = [&]<template <SampleLayout> class Kernel, SampleLayout kLayout>(
                        const std::vector<ResamplePiece>& pieces, size_t section,
                        const uint8_t* from, uint8_t* to) {
    if (pieces.empty()) return;
    Kernel<kLayout> kernel;
    static_cast<ResamplePass&>(kernel) = {.jobs = sections.jobs,
                                          .pieces = sections.pieces[section],
                                          .axes = sections.axes,
                                          .tables = sections.tables,
                                          .from = from,
                                          .to = to,
                                          .count = int64_t(pieces.size()),
                                          .channels = plan.channels};
    run(kernel);
  };
  const auto both = [&](const ResamplePieces& pieces, size_t section, const uint8_t* from,
                        uint8_t* to) {
    using enum SampleLayout;
    pass.template operator()<ResampleRows, kWords>(pieces.rows[0], section, from, to);
    pass.template operator()<ResampleRows, kAny>(pieces.rows[1], section + 1, from, to);
    pass.template operator()<ResampleColumns, kWords>(pieces.columns[0], section + 2, from, to);
    pass.template operator()<ResampleColumns, kAny>(pieces.columns[1], section + 3, from, to);
  };
  both(plan.first, 0, at.pictures, sections.between);
  both(plan.second, 4, sections.between, at.batch);
}

}  // namespace headrace
