// SPDX-License-Identifier: Apache-2.0
// A source made of columns: lists of files, arrays in memory or in files, lists of strings. Record
// i is element i of each column. Reading from arrays in memory does not copy or allocate.
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

// A borrowed dense array in row-major order. Its first dimension indexes the records.
struct ArrayColumn {
  const void* data = nullptr;
  DType dtype = DType::kUInt8;
  int64_t count = 0;
  Shape shape = {};  // per record
  // shared: keeps the memory alive for as long as any view of the source lives (Python's array).
  std::shared_ptr<const void> owner = {};
};

// An array in files. Labels, and columns of at most 64 bytes per record (256 MiB in all), are
// loaded when the source is made; for others, each record is read at its offset on demand.
using FileArrayColumn = FileArray;

// Variable-length values in Arrow's layout: concatenated, with the end of each in memory. Encoded
// images and masks, text or bytes; or, with the kind tensor, vectors of numbers. Values of a part
// in a file are read at their offsets on demand.
struct BlobColumn {
  struct Part {
    const uint8_t* data = nullptr;  // null if in a file
    uint64_t data_bytes = 0;
    const void* offsets = nullptr;  // count + 1 offsets, in elements, ascending
    bool wide = false;              // int64 offsets; else int32
    int64_t count = 0;
    const uint8_t* valid = nullptr;  // one bit per record, lowest first; null: all valid
    int64_t first_bit = 0;
    int file = -1;          // index in `files`; -1: in memory
    uint64_t position = 0;  // offset of the data in it
  };
  std::vector<Part> parts;
  DType dtype = DType::kUInt8;                // of the elements
  std::shared_ptr<const FileSet> files = {};  // shared: columns are copied while they are built
  // shared: keeps the memory alive for as long as any view of the source lives.
  std::shared_ptr<const void> owner = {};
};

// Files, one per record, each holding an encoded image or mask (or text, or bytes, depending on the
// kind).
struct PathColumn {
  std::vector<std::string> paths;
  // The index of each record's path, if records share files: each then reads its part of the file
  // (RecordData::by_range). Empty: record i has path i.
  std::vector<uint32_t> which = {};
  // For paths stored in the dataset: the folder that they are relative to ("." for the current
  // one), and whether they may lead outside of it (named_files.h). Empty: the paths are from the
  // caller.
  std::string root = {};
  bool outside = false;
  // For videos that records share: the column with the times of each record's frames, one or more
  // float64 in memory (T.VideoFramesAt). Then only their bytes are requested from an asynchronous
  // storage, instead of the file for each record.
  std::string times = {};
};

// Strings. A column named "label" becomes class indices, with the class names sorted.
struct TextColumn {
  std::vector<std::string> values;
  std::vector<uint32_t> which = {};  // index of each record's value; empty: record i has value i
};

// The rows of an array at the given offsets from each record's row: shape (offsets, ...), copied on
// reading. Rows are grouped into runs (episodes); beyond the ends of its run, the first or last row
// of the run is repeated.
struct WindowColumn {
  ArrayColumn values;            // padding: only the count is used
  std::vector<int64_t> offsets;  // -kFarthest to kFarthest
  std::vector<int64_t> ends;     // end of each run (exclusive); ascending
  bool padding = false;          // instead of values: bool, whether a row is padding
  static constexpr int64_t kFarthest = int64_t{1} << 31;
};

struct Column {
  std::string name;
  std::variant<ArrayColumn, PathColumn, TextColumn, FileArrayColumn, BlobColumn, WindowColumn>
      values;
  // Empty: inferred from name and type. Arrays: "image" and "mask" (also plural) of uint8 with two
  // or three dimensions per record are images and masks, one-dimensional integers named "label" are
  // labels, the rest are tensors. Files: masks, audio or video if named like that, else images.
  // Text: labels if named "label", else text. Blobs need a kind.
  std::optional<FieldKind> kind = {};
  // Names of the classes 0, 1, 2, ... of a label, if its array comes with names.
  std::vector<std::string> classes = {};
};

// `title`: the beginning of the source's description, "npy train.npy"; without it, the description
// lists the fields. Throws Exception HR0420: no columns, unequal lengths, a duplicate or invalid
// name, a kind that does not match the values, an array that extends beyond the end of its file;
// HR02xx if a file cannot be read; HR0276 if a path leads outside of its root.
SourcePtr records(std::vector<Column> columns, const std::string& title = {});

}  // namespace headrace
