// SPDX-License-Identifier: Apache-2.0
// A source made of columns: lists of files, arrays in memory or in files, lists of text. Record i
// is element i of each. Reading arrays in memory copies and allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "headrace/sources/columns/file_array.h"
#include "headrace/sources/source.h"
#include "headrace/storage/file_set.h"

namespace headrace {

// A dense array in row-major order, borrowed. Its first dimension is the record.
struct ArrayColumn {
  const void* data = nullptr;
  DType dtype = DType::kUInt8;
  int64_t count = 0;
  Shape shape = {};  // of one record
  // shared: keeps the memory alive for as long as any view of the source lives (Python's array).
  std::shared_ptr<const void> owner = {};
};

// An array that lies in files. Labels, and columns of at most 64 bytes per record (256 MiB in all),
// are loaded when the source is made; of others each record is read by position when it is wanted.
using FileArrayColumn = FileArray;

// Values of any length, as Arrow keeps them: end to end, and in memory where each ends. Encoded
// pictures, text and bytes; or, with a kind of tensor, vectors of numbers. Those of a part that
// lies in a file are read by position when they are wanted.
struct BlobColumn {
  struct Part {
    const uint8_t* data = nullptr;  // none in a file
    uint64_t data_bytes = 0;
    const void* offsets = nullptr;  // count + 1 of them, in elements, rising
    bool wide = false;              // int64 offsets; else int32
    int64_t count = 0;
    const uint8_t* valid = nullptr;  // a bit a record, the lowest first; null: all are there
    int64_t first_bit = 0;
    int file = -1;          // of `files`; -1: in memory
    uint64_t position = 0;  // of the data in it
  };
  std::vector<Part> parts;
  DType dtype = DType::kUInt8;                // of the elements
  std::shared_ptr<const FileSet> files = {};  // shared: columns are copied as they are made
  // shared: keeps the memory alive for as long as any view of the source lives.
  std::shared_ptr<const void> owner = {};
};

// Files, one a record, each holding an encoded picture (or text, or bytes, where the kind says so).
struct PathColumn {
  std::vector<std::string> paths;
  // Where the paths stand in data: the folder that they are relative to ("." for the current one),
  // and whether they may lead out of it (named_files.h). Without one they are the caller's own.
  std::string root = {};
  bool outside = false;
};

// Strings. A column named "label" becomes class numbers, its names sorted.
struct TextColumn {
  std::vector<std::string> values;
};

struct Column {
  std::string name;
  std::variant<ArrayColumn, PathColumn, TextColumn, FileArrayColumn, BlobColumn> values;
  // None: by name and type. Arrays: "image", "mask" (also plural) of uint8 with two or three
  // dimensions a record are pictures, one-dimensional integers named "label" are labels, the rest
  // are tensors. Files: masks by that name, else images. Text: labels by that name, else text.
  // Blobs need one.
  std::optional<FieldKind> kind = {};
  // Class names for the numbers 0, 1, 2, ... of a label, if its array comes with names.
  std::vector<std::string> classes = {};
};

// `title`: how its description begins, "npy train.npy"; without one it lists the fields.
// Throws Exception HR0420: no columns, unequal lengths, a name twice or no identifier, a kind that
// does not fit the values, an array that ends after its file; HR02xx when a file cannot be read;
// HR0276 when a path leads out of its root.
SourcePtr records(std::vector<Column> columns, const std::string& title = {});

}  // namespace headrace
