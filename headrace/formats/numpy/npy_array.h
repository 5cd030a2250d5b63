// SPDX-License-Identifier: Apache-2.0
// Reads .npy files (NumPy's NEP 1, versions 1 to 3): the header, which is not evaluated as Python,
// and the arrays of records.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/base/tensor.h"
#include "headrace/sources/columns/file_array.h"

namespace headrace {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

// Elements of one type: numbers, or strings of a fixed width.
struct NpyType {
  enum class Kind : uint8_t { kNumber, kBytes, kUnicode };
  Kind kind = Kind::kNumber;
  DType dtype = DType::kUInt8;  // kNumber
  bool big_endian = false;
  uint64_t bytes = 1;  // size of one element
};

// A member of a structured element.
struct NpyMember {
  std::string name;
  NpyType type;
  Shape shape;          // if it is a subarray
  uint64_t offset = 0;  // within the element
};

struct NpyHeader {
  NpyType type;                    // for arrays without members
  std::vector<NpyMember> members;  // of a structured array
  uint64_t item_bytes = 0;         // size of one element, including members and padding
  bool fortran = false;
  Shape shape;
  uint64_t data_offset = 0;  // offset of the first element, from the magic
  uint64_t data_bytes = 0;   // of all elements
};

// Reads bytes [offset, offset + out.size()) of the file.
using ReadBytes = std::function<Result<void>(uint64_t offset, std::span<uint8_t> out)>;

// `size`: of the file, which must contain all elements. HR0424 for a damaged file, HR0425 for
// unsupported types. `path` is for messages.
Result<NpyHeader> read_npy_header(const ReadBytes& read, uint64_t size, const std::string& path);

// --- Arrays of records (npy_array.cc): one, or one per member of a structured type ---

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

// The first axis indexes the records. Arrays in Fortran order are converted to C order in memory
// (up to 1 GiB), and so are strings. Throws Exception: HR0424, HR0425, HR02xx.
std::vector<NpyValues> read_npy_array(const NpyPlace& place);

// Converts a dense array from Fortran order to C order. REQUIRES: `in` and `out` have the array's
// size.
void c_order_from_fortran(const uint8_t* in, const Shape& shape, size_t item_bytes, uint8_t* out);

}  // namespace headrace
