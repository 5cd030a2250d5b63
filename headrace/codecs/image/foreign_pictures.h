// SPDX-License-Identifier: Apache-2.0
// Names of image formats that no codec here reads, and of other files that are often mistaken for
// images.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace headrace {

// "a WebP picture", "an HTML page": from the first bytes; empty if unknown.
std::string_view foreign_name(std::span<const uint8_t> first_bytes);

}  // namespace headrace
