// SPDX-License-Identifier: Apache-2.0
// For fuzz targets of formats: hostile bytes opened as a source and read completely.
#pragma once

#include <cstdlib>
#include <map>
#include <string>

#include "headrace/formats/format.h"
#include "headrace/sources/fuzz_source.h"

namespace headrace {

// An exception other than ours crashes the target, and so does a storage error, because the file
// exists.
inline void open_and_read(const std::string& path, const std::string& format,
                          std::map<std::string, ParamValue> arguments = {},
                          const FuzzReads& reads = {}) {
  arguments.emplace("format", format);
  try {
    read_all(*open_source(path, arguments), reads);
  } catch (const Exception& exception) {
    if (exception.error().code->kind == ErrorKind::kStorage) std::abort();
  }
}

}  // namespace headrace
