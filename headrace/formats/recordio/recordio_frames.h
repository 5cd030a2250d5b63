// SPDX-License-Identifier: Apache-2.0
// The frames of a RecordIO file (dmlc-core, MXNet): the magic number, a word with the kind of the
// part (3 bits) and its length (29 bits), the bytes, zero padding to a multiple of four.
//
// The magic number never occurs at a multiple of four inside of a record: the writer splits the
// record there and omits the number, and the reader restores it. So, after damage, reading can
// continue at the next magic number that begins a record.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/formats/shards/container_index.h"
#include "headrace/storage/file.h"

namespace headrace {

constexpr uint32_t kRecordIoMagic = 0xced7230a;
constexpr uint64_t kRecordIoHeader = 8;

// A ScanFile. The range between an invalid header and the next start of a record is one bad record
// (HR0476); so is the rest of the file if there are too many such ranges, or if finding them would
// take more than a few times the file's size.
Result<void> scan_recordio(const File& file, ContainerIndex& out,
                           const std::function<void(uint64_t)>& passed);

// The data inside a complete frame: a part of it, or its parts concatenated in `joined`. HR0476.
Result<std::span<const uint8_t>> recordio_data(std::span<const uint8_t> frame, bool verify,
                                               Buffer& joined);

// Lines "key\toffset" of an index file, sorted by offset.
struct RecordIoKey {
  std::string_view key;
  uint64_t offset = 0;
};
// False: the text is not in this format.
bool parse_recordio_index(std::string_view text, std::vector<RecordIoKey>& out);

}  // namespace headrace
