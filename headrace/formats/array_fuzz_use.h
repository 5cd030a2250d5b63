// SPDX-License-Identifier: Apache-2.0
// For fuzz targets of formats of arrays: hostile bytes as a file in memory, opened and read.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "headrace/formats/source.h"

namespace headrace {

// A file in memory under a name of its own, so that suffixes are as the format wants them.
inline std::string file_of(std::span<const uint8_t> bytes) {
  static const int descriptor = ::memfd_create("fuzz", 0);
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  return "/proc/self/fd/" + std::to_string(descriptor);
}

inline void open_and_read(const std::string& path, const std::string& format) {
  try {
    const SourcePtr source = open_source(path, {{"format", format}});
    const std::vector<bool> all(source->schema().size(), true);
    for (int64_t i = 0; i < std::min<int64_t>(source->size(), 100); ++i) {
      RecordData data;
      source->read({&i, 1}, all, {&data, 1});
      size_t sum = source->key(i).size();
      for (const FieldData& field : data.fields) {
        for (const uint8_t byte : field.bytes) sum += byte;
      }
      if (sum == SIZE_MAX) std::abort();  // so that the bytes are really looked at
    }
    (void)source->description();
  } catch (const Exception& exception) {
    if (exception.error().code->kind == ErrorKind::kStorage) std::abort();
  }
}

}  // namespace headrace
