// SPDX-License-Identifier: Apache-2.0
// One column of a columnar source: its field, and the data needed to read a record.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/sources/classes.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/name_list.h"

namespace headrace {

struct Cell {
  enum class Form : uint8_t { kInMemory, kScalar, kFile, kText, kFileArray, kBlob, kWindow };
  Form form = Form::kInMemory;
  // kInMemory, kWindow: record 0, or null for a window of padding flags; kScalar: int64 values
  const uint8_t* data = nullptr;
  size_t bytes = 0;                // kInMemory, kFileArray: per record; kWindow: per row
  NameList names;                  // kFile: paths; kText: values
  std::vector<uint32_t> which;     // kFile, kText: as in PathColumn
  std::string root;                // kFile: as in PathColumn
  std::string folder;              // kFile: the current folder at creation
  std::string times;               // kFile: as in PathColumn
  FileArray array;                 // kFileArray
  BlobColumn blobs;                // kBlob
  std::vector<int64_t> part_ends;  // kBlob, kWindow: end of each part, as a record number
  std::vector<int64_t> offsets;    // kWindow
  size_t buffer = 0;               // kFile, kFileArray, kBlob: its first buffer in a record
  std::vector<int64_t> numbers;    // kScalar: the values, if they had to be converted
  std::shared_ptr<const void> owner;
  std::vector<std::string> classes;

  std::string_view name(int64_t record) const {
    return names[which.empty() ? record : which[record]];
  }
  // For kFile. Relative paths do not depend on the current folder at the time of the call.
  void set_path(int64_t record, std::string& path) const;

  bool is_vector = false;    // kBlob: vectors of elements of `bytes` bytes each
  bool may_be_null = false;  // kBlob: an empty value means a missing one

  // How many of a record's buffers this column uses.
  size_t buffers() const {
    if (form == Form::kBlob) return blobs.files ? 1 : 0;
    return form == Form::kFile || form == Form::kWindow ? 1 : form == Form::kFileArray ? 2 : 0;
  }
};

// Fills the cell and returns its field; may move the column's values. Throws Exception HR0420.
Field make_cell(Column& column, Cell& cell);

int64_t length_of(const Column& column);
// Adds the column's contents to the fingerprint. Throws a storage error if a file cannot be read.
void add_cell(const Field& field, const Cell& cell, int64_t count, Fingerprint& print);

// The kind implied by the names "mask", "masks", "image", "images", "audio" and "video".
std::optional<FieldKind> media_kind_named(std::string_view name);
// Turns a field of file contents into a field of this kind. False: not possible.
bool take_encoded(FieldKind kind, Field& field);

[[noreturn]] void bad_column(const std::string& name, const std::string& what,
                             const std::string& hint = {});
[[noreturn]] void no_columns();

// --- Columns of arrays, in memory or in files (column_array.cc) ---

// make_cell() for such columns.
Field make_array(ArrayColumn& array, const Column& column, Cell& cell);
Field make_file_array(FileArray& array, const Column& column, Cell& cell);
// add_cell() for such columns. There may be many values, so only the bytes at sixteen positions are
// added.
void add_array(const Cell& cell, int64_t count, Fingerprint& print);

// --- Columns of variable-length values in Arrow's layout (column_blob.cc) ---

struct Blob {
  const uint8_t* data = nullptr;  // null if in a file
  int file = -1;                  // index in the column's files; -1: in memory
  uint64_t position = 0;
  size_t bytes = 0;

  // Reads the first out.size() bytes.
  Result<void> read(const BlobColumn& column, std::span<uint8_t> out) const;
};
// The location of a record's blob; empty if the record has none.
std::optional<Blob> blob_of(const Cell& cell, int64_t record);

// make_cell() for such columns.
Field make_blobs(BlobColumn& blobs, const Column& column, Cell& cell);
// add_cell() for such columns: adds the length and first bytes of some values.
void add_blobs(const Cell& cell, int64_t count, Fingerprint& print);

// --- Columns of windows, the rows of an array around each record (column_window.cc) ---

// make_cell() for such columns.
Field make_window(WindowColumn& rows, const Column& column, Cell& cell);
// For Cell::Form::kWindow: fills `out`. REQUIRES: out.size() == bytes * offsets.size().
void read_window(const Cell& cell, int64_t record, std::span<uint8_t> out);

}  // namespace headrace
