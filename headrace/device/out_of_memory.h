// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace headrace {

// Throws Exception HR0880 with the numbers.
[[noreturn]] void throw_out_of_memory(const std::string& device, size_t wanted, size_t free,
                                      size_t total);

}  // namespace headrace
