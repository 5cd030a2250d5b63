// SPDX-License-Identifier: Apache-2.0
// A source made of columns that the caller holds: lists of files, arrays in memory, lists of text.
// Record i is element i of each. Reading arrays copies and allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "headrace/formats/source.h"

namespace headrace {

// A dense array in row-major order, borrowed. Its first dimension is the record.
struct ArrayColumn {
  const void* data = nullptr;
  DType dtype = DType::kUInt8;
  int64_t count = 0;
  Shape shape = {};  // of one record
  // shared: keeps the memory alive for as long as any view of the source lives (the host's array).
  std::shared_ptr<const void> owner = {};
};

// Files, one a record, each holding an encoded picture (or text, or bytes, where the kind says so).
struct PathColumn {
  std::vector<std::string> paths;
};

// Strings. A column named "label" becomes class numbers, its names sorted.
struct TextColumn {
  std::vector<std::string> values;
};

struct Column {
  std::string name;
  std::variant<ArrayColumn, PathColumn, TextColumn> values;
  // None: by name and type. Arrays: "image", "mask" (also plural) of uint8 with two or three
  // dimensions a record are pictures, one-dimensional integers named "label" are labels, the rest
  // are tensors. Files: masks by that name, else images. Text: labels by that name, else text.
  std::optional<FieldKind> kind = {};
};

// Throws Exception HR0420: no columns, unequal lengths, a name twice or no identifier, a kind that
// does not fit the values.
SourcePtr records(std::vector<Column> columns);

}  // namespace headrace
