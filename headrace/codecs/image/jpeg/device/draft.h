// SPDX-License-Identifier: Apache-2.0
// One picture that a device is to decode: its header, row index and window turned into what the
// kernels of kernels/device_jpeg/ are told, and the bytes of the rows that the window takes.
//
// A device takes plain baseline pictures with known rows; whatever it does not take the CPU
// decodes, to the same pixels. Any thread may make drafts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/codec.h"
#include "headrace/kernels/device_jpeg/device_picture.h"

namespace headrace {

// As if it were alone in its batch: jobs, words and blocks are numbered from its own first.
struct JpegDeviceDraft {
  DevicePicture picture{};
  std::array<DeviceCode, 4> codes;
  std::array<std::array<int16_t, 64>, 3> quantizations;  // of its components
  std::vector<RowJob> row_jobs;
  int64_t blocks = 0;

  // Of a component's samples, and of the window's rows.
  int64_t sample_bytes(int component) const;
  int64_t out_bytes() const;
};

// Appends the rows' bytes, without stuffing, to `streams`. False where the CPU has to decode the
// picture; then `streams` is as it was.
// REQUIRES: the row index is one of these bytes, as far as whoever keeps it can tell.
bool make_device_draft(std::span<const uint8_t> bytes, std::span<const uint8_t> row_index,
                       const Window& window, ColorMode color, JpegDeviceDraft& draft,
                       std::vector<uint32_t>& streams);

}  // namespace headrace
