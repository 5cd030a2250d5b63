// SPDX-License-Identifier: Apache-2.0
// Runs all kernels of this folder on one batch, in order.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/device/device.h"
#include "headrace/kernels/device_jpeg/clear_words.h"
#include "headrace/kernels/device_jpeg/color_pixels.h"
#include "headrace/kernels/device_jpeg/device_image.h"
#include "headrace/kernels/device_jpeg/sum_dc.h"
#include "headrace/kernels/device_jpeg/transform_blocks.h"
#include "headrace/kernels/device_jpeg/walk_rows.h"

namespace headrace {

// Numbers and sizes of everything in a batch. Known on the host.
struct DeviceJpegSizes {
  int64_t images = 0, row_jobs = 0, walk_groups = 0, block_jobs = 0;
  std::array<int64_t, kColorKinds> pixel_jobs{};
  int64_t codes = 0, quantizations = 0;
  int64_t stream_words = 0;
  int64_t blocks = 0;        // number of coefficient blocks, 128 bytes each
  int64_t sample_bytes = 0;  // bytes of the components' samples
  int64_t out_bytes = 0;     // bytes of the windows' rows
};

// Addresses as the kernels see them: of what the host prepared, and of what the kernels compute.
struct DeviceJpegMemory {
  const DeviceImage* images = nullptr;
  const DeviceCode* codes = nullptr;
  const int16_t* quantizations = nullptr;  // tables of 64, aligned to 16 bytes
  const uint8_t* places = nullptr;         // WalkTables::place
  const RowJob* row_jobs = nullptr;
  const WalkGroup* walk_groups = nullptr;
  const PieceJob* block_jobs = nullptr;
  std::array<const PieceJob*, kColorKinds> pixel_jobs{};
  const uint32_t* streams = nullptr;

  WalkTables* tables = nullptr;
  int16_t* coefficients = nullptr;
  uint8_t* samples = nullptr;
  uint8_t* refused = nullptr;  // one flag per image, rounded up to a multiple of 16
  uint8_t* out = nullptr;
};

// Bytes prepared by the host, and device scratch bytes without the rows. Each is one block of
// memory; place() computes its sections.
int64_t upload_bytes(const DeviceJpegSizes& sizes);
int64_t scratch_bytes(const DeviceJpegSizes& sizes);
// The part of the scratch before the coefficients. After the transform the coefficients are not
// needed, so `out` and the memory after it may overlap them, from here on.
int64_t lasting_bytes(const DeviceJpegSizes& sizes);
// Both blocks and `out` are aligned to 256 bytes.
DeviceJpegMemory place(const DeviceJpegSizes& sizes, uint8_t* upload, uint8_t* scratch,
                       uint8_t* out);

int64_t flag_bytes(const DeviceJpegSizes& sizes);

// Calls run(kernel) with each kernel, in order.
template <class Run>
void for_each_kernel(const DeviceJpegSizes& sizes, const DeviceJpegMemory& at, Run&& run) {
  run(ClearWords{.memory = at.refused, .bytes = flag_bytes(sizes)});
  run(MakeTables{.images = at.images,
                 .codes = at.codes,
                 .places = at.places,
                 .tables = at.tables,
                 .count = sizes.images});
  run(WalkRows{.images = at.images,
               .groups = at.walk_groups,
               .jobs = at.row_jobs,
               .tables = at.tables,
               .streams = at.streams,
               .coefficients = at.coefficients,
               .refused = at.refused,
               .group_count = sizes.walk_groups});
  run(SumDc{.images = at.images,
            .groups = at.walk_groups,
            .jobs = at.row_jobs,
            .coefficients = at.coefficients,
            .refused = at.refused,
            .group_count = sizes.walk_groups});
  run(TransformBlocks{.images = at.images,
                      .jobs = at.block_jobs,
                      .coefficients = at.coefficients,
                      .steps = at.quantizations,
                      .samples = at.samples,
                      .count = sizes.block_jobs});
  const auto color = [&]<ColorKind kKind>(ColorPixels<kKind>) {
    constexpr size_t kNumber = static_cast<size_t>(kKind);
    if (sizes.pixel_jobs[kNumber] == 0) return;
    run(ColorPixels<kKind>{.images = at.images,
                           .jobs = at.pixel_jobs[kNumber],
                           .samples = at.samples,
                           .out = at.out,
                           .count = sizes.pixel_jobs[kNumber]});
  };
  color(ColorPixels<ColorKind::kPlain>{});
  color(ColorPixels<ColorKind::kDoubled>{});
  color(ColorPixels<ColorKind::kAny>{});
}

// Queues all kernels. The memory in `at` must stay valid until an event recorded after them
// completes. Throws Exception HR0860 if CUDA fails.
void queue_decoding(Stream& stream, const DeviceJpegSizes& sizes, const DeviceJpegMemory& at);

}  // namespace headrace
