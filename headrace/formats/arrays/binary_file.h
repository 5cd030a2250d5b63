// SPDX-License-Identifier: Apache-2.0
// A file of plain binary numbers, gzipped or not: read in place, or decompressed into memory when
// it is opened. For small datasets distributed in this form (MNIST, CIFAR).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "headrace/sources/columns/file_array.h"

namespace headrace {

// Opens all bytes of a file as one FilePart; `count` remains 0. Throws Exception: HR02xx, HR0422,
// HR0423.
FilePart open_binary(const std::string& path);

// Reads the first bytes, decompressed if the file is gzipped. Returns how many; 0 if the file
// cannot be read.
size_t peek_binary(const std::string& path, std::span<uint8_t> out);

}  // namespace headrace
