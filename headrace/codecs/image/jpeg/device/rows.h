// SPDX-License-Identifier: Apache-2.0
// The rows of MCUs that a window takes, as a device walks them: a job for each, or for each restart
// interval of one, and their bytes without stuffing. Any thread may call it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/image/jpeg/decode/row_index.h"
#include "headrace/codecs/image/jpeg/headers/header.h"
#include "headrace/kernels/device_jpeg/device_picture.h"

namespace headrace {

struct JpegDeviceRows {
  std::span<const uint8_t> bytes;
  const JpegHeader& header;
  const JpegRowIndex& index;
  int first = 0, end = 0;  // rows of MCUs
  int columns = 0;         // MCUs of each, up to the window's right edge
  int blocks = 0;          // of an MCU
};

// Appends the words of the picture's stream, and jobs. Returns how many blocks the picture has; -1
// where the CPU has to decode it (some may have been appended then): a row is not known, the bytes
// end, or a marker is not the one that belongs there.
int64_t add_device_rows(const JpegDeviceRows& rows, std::vector<RowJob>& jobs,
                        std::vector<uint32_t>& streams);

}  // namespace headrace
