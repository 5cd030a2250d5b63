// SPDX-License-Identifier: Apache-2.0
// A file next to an unpacked copy, which is written last: the file of which it is a copy,
// and the means to verify that it still is.
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

// How the packed file was when the copy was made. Its size and time of modification are part of the
// copy's name.
struct PackedState {
  int64_t status_changed_ns = 0;  // shows a file that was written in place
  uint64_t ends = 0;              // hash of its first and last bytes
  bool operator==(const PackedState&) const = default;
};

// How the copy was when it was complete. Anybody who has touched it since shows.
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
  // Why the copy ends before the file does; `where` is a place in the packed file.
  std::optional<Error> damage = {};
};

std::vector<uint8_t> bytes_from_about(const AboutCopy& about);
// Nothing where the bytes are not what bytes_from_about() gives.
std::optional<AboutCopy> about_from_bytes(std::span<const uint8_t> bytes);

}  // namespace headrace
