// SPDX-License-Identifier: Apache-2.0
// The rows of MCUs that a window takes, as a device walks them: a job for each stretch between two
// entries of the row index or two restart markers, and their bytes without stuffing. Stretches that
// end left of the window are left out. Any thread may call it.
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
  int first = 0, end = 0;   // rows of MCUs
  int left = 0, right = 0;  // MCUs of each that the window needs: the first, and the one after
  int blocks = 0;           // of an MCU
};

// Whether the index knows the rows. REQUIRED by the functions below.
bool are_known(const JpegDeviceRows& rows);

// Facts about the rows from the index.
struct JpegWalkedRows {
  int first_column = 0;      // of MCUs, with which the walk begins: at most `left`
  int64_t blocks = 0;        // a row of MCUs after the other, each from that column to `right`
  size_t words = 0;          // upper bound of those made by write_device_rows(); hardly more
  size_t jobs = 0;           // the same
  bool are_searched = true;  // for entries inside of rows, all of them
};
JpegWalkedRows walked_rows(const JpegDeviceRows& rows);

// Writes the bytes of the rows and appends jobs, the longest first, whose words and blocks are
// numbered as if the first walked column were 0. Returns the words; 0 where the CPU has to decode
// the picture (some jobs may have been appended then): an entry is not of these bytes, the bytes
// end, or a marker is not the one that belongs there.
size_t write_device_rows(const JpegDeviceRows& rows, const JpegWalkedRows& walked, uint32_t* to,
                         std::vector<RowJob>& jobs);

}  // namespace headrace
