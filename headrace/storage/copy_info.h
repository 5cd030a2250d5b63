// SPDX-License-Identifier: Apache-2.0
// The file that describes the decompressed copy next to it: the path of the original file, and the
// data needed to verify the copy. Written after the copy.
//
// The format is private, and parsed as hostile input: its contents are checked against the file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/error.h"

namespace headrace {

// The state of the compressed file when the copy was made. Its size and modification time are part
// of the copy's name.
struct PackedState {
  int64_t status_changed_ns = 0;  // detects files that were modified in place
  uint64_t ends = 0;              // hash of its first and last bytes
  bool operator==(const PackedState&) const = default;
};

// The state of the copy when it was complete, which reveals any later modification.
struct CopyState {
  uint64_t bytes = 0;
  int64_t modified_ns = 0, status_changed_ns = 0;
  bool operator==(const CopyState&) const = default;
};
std::optional<CopyState> state_of_copy(const std::string& path);

struct CopyInfo {
  std::string packed_path;
  PackedState packed;
  CopyState copy;
  uint64_t hash = 0;  // XXH3 of the copy's bytes
  // Why decompression stopped before the end of the file; `where` is an offset in the compressed
  // file.
  std::optional<Error> damage = {};
};

std::vector<uint8_t> bytes_from_copy_info(const CopyInfo& about);
// Empty unless the bytes are in the form that bytes_from_copy_info() writes.
std::optional<CopyInfo> copy_info_from_bytes(std::span<const uint8_t> bytes);

}  // namespace headrace
