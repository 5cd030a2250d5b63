// SPDX-License-Identifier: Apache-2.0
// Converts a .npy file to arrays of records: one array, or one per member of a structured type.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "headrace/formats/numpy/npy_header.h"
#include "headrace/sources/columns/file_array.h"

namespace headrace {

// The location of a .npy: part of a file, or in memory. `part.count` is ignored.
struct NpyPlace {
  FilePart part;
  uint64_t size = 0;  // of the .npy
  std::string path;   // for messages: "a.npz"
  std::string member = {};
};

struct NpyValues {
  std::string member;  // for a structured type; otherwise empty
  std::variant<FileArray, std::vector<std::string>> values;
};

// The first axis is the record. Arrays in Fortran order are converted to C order in memory (up to 1
// GiB), and so are strings. Throws Exception: HR0424, HR0425, HR02xx.
std::vector<NpyValues> read_npy_array(const NpyPlace& place);

// Converts a dense array from Fortran order to C order. REQUIRES: `in` and `out` have the array's
// size.
void c_order_from_fortran(const uint8_t* in, const Shape& shape, size_t item_bytes, uint8_t* out);

}  // namespace headrace
