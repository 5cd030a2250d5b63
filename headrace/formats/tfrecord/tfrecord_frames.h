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

constexpr uint64_t kTfHeaderBytes = 12;                 // before the data
constexpr uint64_t kTfFrameBytes = kTfHeaderBytes + 4;  // all that is not data

// The CRC-32C as TFRecord stores it.
uint32_t masked_crc32c(std::span<const uint8_t> bytes);

// The length that a header gives, where its checksum is right. REQUIRES: 12 bytes.
bool tf_length(std::span<const uint8_t> header, uint64_t& length);

// A ScanFile: hops from header to header. Where one makes no sense the file ends with a bad record
// (HR0470): nothing says where the next one begins.
Result<void> scan_tfrecord(const File& file, ContainerIndex& out,
                           const std::function<void(uint64_t)>& passed);

// The data inside a whole frame; HR0470 or, with `verify`, HR0471.
Result<std::span<const uint8_t>> tf_data(std::span<const uint8_t> frame, bool verify);

// Adds the records that an index file in `text` names (lines "offset size", as tfrecord2idx writes
// them), if they are those of the file: frames one after the other, from its begin to its end, and
// 64 of them looked at. False: nothing was added.
Result<bool> take_tfrecord_index(const File& file, std::string_view text, ContainerIndex& out);

}  // namespace headrace
