// SPDX-License-Identifier: Apache-2.0
// The frames of a TFRecord file: u64 length, masked CRC-32C of the length, data, masked CRC-32C of
// the data. All numbers are little-endian.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "headrace/base/error.h"
#include "headrace/formats/shards/container_index.h"
#include "headrace/storage/file.h"

namespace headrace {

constexpr uint64_t kTfHeaderBytes = 12;                 // bytes before the data
constexpr uint64_t kTfFrameBytes = kTfHeaderBytes + 4;  // bytes other than data

// The CRC-32C in TFRecord's masked form.
uint32_t masked_crc32c(std::span<const uint8_t> bytes);

// The length in a header, if its checksum is correct. REQUIRES: 12 bytes.
bool tf_length(std::span<const uint8_t> header, uint64_t& length);

// A ScanFile that reads header after header. An invalid header ends the file with a bad record
// (HR0470), because the start of the next frame is unknown.
Result<void> scan_tfrecord(const File& file, ContainerIndex& out,
                           const std::function<void(uint64_t)>& passed);

// The data inside a complete frame; HR0470 or, with `verify`, HR0471.
Result<std::span<const uint8_t>> tf_data(std::span<const uint8_t> frame, bool verify);

// Adds the records of an index file with the contents `text` (lines "offset size", as tfrecord2idx
// writes them), if they match the file: contiguous frames from start to end, of which 64 are
// checked. False: nothing was added.
Result<bool> take_tfrecord_index(const File& file, std::string_view text, ContainerIndex& out);

}  // namespace headrace
