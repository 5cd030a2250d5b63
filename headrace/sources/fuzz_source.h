// SPDX-License-Identifier: Apache-2.0
// For fuzz targets: provides hostile bytes as a file in memory, and reads a whole source.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// Writes the bytes to this process's one file in memory, and returns its path. Disables the index
// cache: the next input is another file with the same name.
inline std::string file_of(std::span<const uint8_t> bytes) {
  static const int descriptor = ::memfd_create("fuzz", 0);
  static const bool no_cache = ::setenv("HEADRACE_CACHE", "", 1) == 0;
  if (!no_cache || ::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  return "/proc/self/fd/" + std::to_string(descriptor);
}

inline std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::span<uint8_t> bytes_of(std::string& text) {
  return {reinterpret_cast<uint8_t*>(text.data()), text.size()};
}

// Damages valid bytes as the fuzz input specifies: repeated {u16 position, u8 count, bytes}.
// REQUIRES: `bytes` is not empty.
inline void change(
    std::span<uint8_t> bytes, std::span<const uint8_t> changes, size_t max_at_once = 8,
    size_t (*place_of)(size_t word, size_t size) = [](size_t word, size_t size) {
      return word % size;
    }) {
  while (changes.size() > 3) {
    const size_t at = place_of(changes[0] | size_t{changes[1]} << 8, bytes.size());
    const size_t count = std::min(changes[2] % max_at_once + 1, changes.size() - 3);
    std::copy_n(changes.begin() + 3, std::min(count, bytes.size() - at), bytes.begin() + at);
    changes = changes.subspan(3 + count);
  }
}

// The parts of a source to read, and additional checks.
struct FuzzReads {
  int64_t records = 100;
  size_t record_bytes = SIZE_MAX;
  std::function<void(const Source&, const RecordData&)> look = {};
};

// Reads every byte of the first records, and every column of integers.
inline void read_all(const Source& source, const FuzzReads& reads = {}) {
  const std::vector<bool> all(source.schema().size(), true);
  size_t sum = source.description().size();
  for (int64_t i = 0; i < std::min(source.size(), reads.records); ++i) {
    RecordData data;
    data.max_bytes = reads.record_bytes;
    source.read({&i, 1}, all, {&data, 1});
    sum += source.key(i).size();
    for (const FieldData& field : data.fields) {
      for (const uint8_t byte : field.bytes) sum += byte;
    }
    if (reads.look) reads.look(source, data);
  }
  for (const Field& field : source.schema()) {
    const std::vector<int64_t> column = source.integer_column(field.name);
    if (!column.empty() && column.size() != static_cast<size_t>(source.size())) std::abort();
  }
  if (sum == SIZE_MAX) std::abort();  // so that the reads are not optimized away
}

}  // namespace headrace
