// SPDX-License-Identifier: Apache-2.0
// Names for what is a picture, or often stands where one should, and that no codec here reads.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace headrace {

// "a WebP picture", "an HTML page": by the first bytes; empty where they say nothing.
std::string_view foreign_name(std::span<const uint8_t> first_bytes);

}  // namespace headrace
