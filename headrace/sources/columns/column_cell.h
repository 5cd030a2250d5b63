// SPDX-License-Identifier: Apache-2.0
// A column in a source of columns: its field, and the means of reading a record.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
  // kInMemory, kWindow: of record 0, null where a window is one of padding; kScalar: int64 values
  const uint8_t* data = nullptr;
  size_t bytes = 0;                // kInMemory, kFileArray: of one record; kWindow: of one row
  NameList names;                  // kFile: paths; kText: values
  std::vector<uint32_t> which;     // kFile, kText: PathColumn's
  std::string root;                // kFile: PathColumn's
  std::string folder;              // kFile: of the process when the cell was made
  FileArray array;                 // kFileArray
  BlobColumn blobs;                // kBlob
  std::vector<int64_t> part_ends;  // kBlob, kWindow: numbers of the records after the parts
  std::vector<int64_t> offsets;    // kWindow
  size_t buffer = 0;             // kFile, kFileArray, kBlob: the first of its own among a record's
  std::vector<int64_t> numbers;  // kScalar: where they had to be converted
  std::shared_ptr<const void> owner;
  std::vector<std::string> classes;

  std::string_view name(int64_t record) const {
    return names[which.empty() ? record : which[record]];
  }
  // kFile. What a relative path means does not change with the process's folder.
  void set_path(int64_t record, std::string& path) const;

  bool is_vector = false;    // kBlob: of elements of `bytes` bytes each
  bool may_be_null = false;  // kBlob: an empty value stands for none

  // Number of a record's own buffers.
  size_t buffers() const {
    if (form == Form::kBlob) return blobs.files ? 1 : 0;
    return form == Form::kFile || form == Form::kWindow ? 1 : form == Form::kFileArray ? 2 : 0;
  }
};

// Fills the cell and gives its field; may take the column's values. Throws Exception HR0420.
Field make_cell(Column& column, Cell& cell);

int64_t length_of(const Column& column);
// Adds the identity of a column. Throws a storage error when a file cannot be read.
void add_cell(const Field& field, const Cell& cell, int64_t count, Fingerprint& print);

// "mask", "masks", "image", "images", "audio", "video" say what they are.
std::optional<FieldKind> media_kind_named(std::string_view name);
// Whether a field of file contents becomes a field of the kind.
bool take_encoded(FieldKind kind, Field& field);

[[noreturn]] void bad_column(const std::string& name, const std::string& what,
                             const std::string& hint = {});
[[noreturn]] void no_columns();

}  // namespace headrace
