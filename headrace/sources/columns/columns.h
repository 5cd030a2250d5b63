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

// An array in files. Labels, and columns of at most 64 bytes per record (256 MiB in all), are
// loaded when the source is made; for others each record is read by position on demand.
using FileArrayColumn = FileArray;

// Variable-length values in Arrow's layout: concatenated, with the end of each in memory. Encoded
// pictures, text and bytes; or, with a tensor kind, vectors of numbers. Those of a part in a file
// are read by position on demand.
struct BlobColumn {
  struct Part {
    const uint8_t* data = nullptr;  // none in a file
    uint64_t data_bytes = 0;
    const void* offsets = nullptr;  // count + 1 of them, in elements, rising
    bool wide = false;              // int64 offsets; else int32
    int64_t count = 0;
    const uint8_t* valid = nullptr;  // a bit per record, the lowest first; null: all are valid
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

// Files, one per record, each holding an encoded picture (or text, or bytes, depending on the
// kind).
struct PathColumn {
  std::vector<std::string> paths;
  // The number of each record's path, if records share files: each then reads its own parts
  // (RecordData::by_range). Empty: record i has path i.
  std::vector<uint32_t> which = {};
  // For paths stored in data: the folder that they are relative to ("." for the current one), and
  // whether they may lead out of it (named_files.h). Without one they come from the caller.
  std::string root = {};
  bool outside = false;
};

// Strings. A column named "label" becomes class numbers, its names sorted.
struct TextColumn {
  std::vector<std::string> values;
  std::vector<uint32_t> which = {};  // the number of each record's value; empty: record i has i
};

// The rows of an array around each record, at these distances from its own: (offsets, ...), which
// is copied when it is read. Rows belong to runs (episodes), and beyond the border of its run a
// record has the run's first or last row.
struct WindowColumn {
  ArrayColumn values;            // padding: only the count is used
  std::vector<int64_t> offsets;  // -kFarthest to kFarthest
  std::vector<int64_t> ends;     // of each run the number after its last record; rising
  bool padding = false;          // in place of values: bool, whether a row is beyond the border
  static constexpr int64_t kFarthest = int64_t{1} << 31;
};

struct Column {
  std::string name;
  std::variant<ArrayColumn, PathColumn, TextColumn, FileArrayColumn, BlobColumn, WindowColumn>
      values;
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
