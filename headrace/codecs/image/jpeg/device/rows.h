// SPDX-License-Identifier: Apache-2.0
// The MCU rows that a window needs, as decoded by a device: a job for each segment between two
// entries of the row index or two restart markers, and their bytes without stuffing. Segments that
// end left of the window are skipped. Any thread may call it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/image/jpeg/decode/row_index.h"
#include "headrace/codecs/image/jpeg/headers/header.h"
#include "headrace/kernels/device_jpeg/device_image.h"

namespace headrace {

struct JpegDeviceRows {
  std::span<const uint8_t> bytes;
  const JpegHeader& header;
  const JpegRowIndex& index;
  int first = 0, end = 0;   // MCU rows
  int left = 0, right = 0;  // range of MCUs per row that the window needs
  int blocks = 0;           // blocks per MCU
};

// Whether the index covers the rows. REQUIRED by the functions below.
bool are_known(const JpegDeviceRows& rows);

// What the index says about the rows.
struct JpegWalkedRows {
  int first_column = 0;      // MCU column where decoding begins: at most `left`
  int64_t blocks = 0;        // blocks in all of the MCU rows, each from that column to `right`
  size_t words = 0;          // tight upper bound on the words that write_device_rows() writes
  size_t jobs = 0;           // upper bound on the jobs that it appends
  bool are_searched = true;  // whether all of the rows were searched for inner entries
};
JpegWalkedRows walked_rows(const JpegDeviceRows& rows);

// Writes the bytes of the rows and appends jobs, longest first, whose words and blocks are numbered
// as if the first decoded column were 0. Returns the number of words; 0 if the CPU has to decode
// the image (some jobs may have been appended then): an entry does not belong to these bytes, the
// bytes end, or a marker is not the expected one.
size_t write_device_rows(const JpegDeviceRows& rows, const JpegWalkedRows& walked, uint32_t* to,
                         std::vector<RowJob>& jobs);

}  // namespace headrace
