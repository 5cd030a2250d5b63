// SPDX-License-Identifier: Apache-2.0
// Converts a table of strings to fields: paths, labels, numbers, text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/dtype.h"
#include "headrace/formats/manifest/manifest_table.h"
#include "headrace/sources/classes.h"
#include "headrace/sources/schema.h"

namespace headrace {

struct ManifestOptions {
  std::optional<std::string> image = {}, label = {};    // column names; empty: detected
  std::optional<std::vector<std::string>> fields = {};  // other columns to use; empty: all
  std::optional<ClassList> classes = {};
  std::optional<DType> floats = {};  // empty: chosen per column
  bool fill_missing = false;
};

// A field. Only one of the lists is filled.
struct ManifestField {
  enum class Form : uint8_t { kFile, kText, kInteger, kNumber };
  Field field;
  Form form = Form::kText;
  NameList names;                 // kFile: paths as written; kText
  std::string suffix;             // kFile: appended to the paths
  std::vector<int64_t> integers;  // kInteger
  std::vector<uint8_t> numbers;   // kNumber: elements of field.dtype
  ClassList classes;              // for a label with names
};

// Consumes the table's columns. Throws Exception: HR0438 for a value that does not match its
// column, with its line; HR0439 for a column that does not exist; HR0406 for classes that do not
// match.
std::vector<ManifestField> fields_of(ManifestTable table, ManifestOptions options,
                                     const File& file);

// --- Numbers in tables (manifest_numbers.cc), and how many bits the fractions of a column need ---

// Parse numbers without leading zeros: 007 is a name.
std::optional<int64_t> integer_in(std::string_view text);
std::optional<double> number_in(std::string_view text);
// Whether the text is an integer of any size, including leading zeros.
bool is_whole(std::string_view text);

// The dtype of a column of fractions: float32, or float64 if float32 would make different numbers
// equal. See Note [Which fractions need 64 bits].
class FractionWidth {
 public:
  void add(std::string_view written, double value);
  DType dtype();

 private:
  bool loses_units_ = false;
  std::vector<double> decimal_;  // values with more digits than float32 can distinguish
};

}  // namespace headrace
