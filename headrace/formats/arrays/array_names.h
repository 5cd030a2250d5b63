// SPDX-License-Identifier: Apache-2.0
// What the names of arrays in files say: what they hold, and how their fields are called.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// "images" -> "image", also of mask and label; empty: the name says nothing.
std::string_view meaning_of(std::string_view name);

// As a field's name: letters, digits and _, no digit first; none of those that every source has.
// Always UTF-8, whatever the bytes are.
std::string field_name_of(std::string_view text);

}  // namespace headrace
