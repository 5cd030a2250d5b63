// SPDX-License-Identifier: Apache-2.0
// The functions that a plug-in's format can call. While it opens a path, it can read files and add
// columns, files and records; while it parses a record, it can allocate memory. One object per
// call, on its thread.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/formats/shards/container_index.h"
#include "headrace/plugin.h"
#include "headrace/sources/schema.h"
#include "headrace/storage/file.h"

// What has been added, or the buffers of the record. Plug-ins only know the name of this type.
struct headrace_opened {
  headrace::Schema schema = {};
  std::vector<std::string> files = {};
  headrace::ContainerIndex index = {};
  std::string wrong = {};                      // which rule it broke
  std::optional<headrace::Error> failed = {};  // from reading
  std::optional<headrace::File> file = {};     // the file read last
  std::exception_ptr thrown = {};              // by the engine, not the plug-in
  std::span<headrace::Buffer> buffers = {};
  uint64_t max_bytes = 0;  // of one buffer
  struct Cell {
    uint32_t number;
    uint64_t bytes;
  };
  std::optional<Cell> refused = {};  // more than max_bytes, or than the available memory
};

namespace headrace {

// The functions that add to `opened`, which must outlive them.
headrace_opening opening_of(headrace_opened& opened);
// headrace_parse::allocate.
uint8_t* allocate_cell(headrace_opened* opened, uint32_t cell, uint64_t bytes);

}  // namespace headrace
