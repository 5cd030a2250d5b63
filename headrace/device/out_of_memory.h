// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "headrace/base/error.h"

namespace headrace {

std::string mebibytes(size_t bytes);  // "12.5 MiB"

// Throws Exception HR0880, which states the requested, free and total bytes.
[[noreturn]] void throw_out_of_memory(const std::string& device, size_t wanted, size_t free,
                                      size_t total);
bool is_out_of_memory(const Exception& exception);

}  // namespace headrace
