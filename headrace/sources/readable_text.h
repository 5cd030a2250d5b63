// SPDX-License-Identifier: Apache-2.0
// Formats numbers and lists as readable text, for descriptions and messages of sources.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace {

// 1281167 -> "1,281,167"
std::string with_commas(int64_t number);
// (1, "record") -> "1 record"; (1000, "class", "classes") -> "1,000 classes"
std::string count_text(int64_t number, const std::string& singular, const std::string& plural = {});
// "'cat', 'dog' and 3 more"
std::string quoted_list(const std::vector<std::string>& names, size_t most = 5);
// A shape, as Python writes it: (3,), (2, 3)
std::string tuple_text(const std::vector<int64_t>& shape);

}  // namespace headrace
