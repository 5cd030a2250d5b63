// SPDX-License-Identifier: Apache-2.0
// A file next to a decompressed copy, which is written last: it names the original file, and has
// the means to verify the copy.
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
  int64_t status_changed_ns = 0;  // shows a file that was written in place
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

struct AboutCopy {
  std::string packed_path;
  PackedState packed;
  CopyState copy;
  uint64_t hash = 0;  // XXH3 of the copy's bytes
  // Why the copy ends before the file does; `where` is an offset in the compressed file.
  std::optional<Error> damage = {};
};

std::vector<uint8_t> bytes_from_about(const AboutCopy& about);
// Nothing where the bytes are not what bytes_from_about() gives.
std::optional<AboutCopy> about_from_bytes(std::span<const uint8_t> bytes);

}  // namespace headrace
