// SPDX-License-Identifier: Apache-2.0
// From a table of strings to fields: paths, labels, numbers, text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/formats/manifest/manifest_table.h"
#include "headrace/sources/classes.h"
#include "headrace/sources/schema.h"

namespace headrace {

struct ManifestOptions {
  std::optional<std::string> image = {}, label = {};    // names of columns; none: found
  std::optional<std::vector<std::string>> fields = {};  // of the others; none: all
  std::optional<ClassList> classes = {};
  std::optional<DType> floats = {};  // none: by the column
  bool fill_missing = false;
};

// One field. Of the values, one list is filled.
struct ManifestField {
  enum class Form : uint8_t { kFile, kText, kInteger, kNumber };
  Field field;
  Form form = Form::kText;
  NameList names;                 // kFile: paths as written; kText
  std::string suffix;             // kFile: that the paths lack
  std::vector<int64_t> integers;  // kInteger
  std::vector<uint8_t> numbers;   // kNumber: elements of field.dtype
  ClassList classes;              // of a label with names
};

// Takes the table's columns. Throws Exception: HR0438 a value that its column cannot hold, with its
// line; HR0439 a column that is not there; HR0406 classes that do not match.
std::vector<ManifestField> fields_of(ManifestTable table, ManifestOptions options,
                                     const File& file);

}  // namespace headrace
