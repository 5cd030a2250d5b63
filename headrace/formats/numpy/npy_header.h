// SPDX-License-Identifier: Apache-2.0
// Parses the header of a .npy file (NumPy's NEP 1, versions 1 to 3) without evaluating it as
// Python.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/base/tensor.h"

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

}  // namespace headrace
