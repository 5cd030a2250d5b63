// SPDX-License-Identifier: Apache-2.0
// Numbers as text and text as numbers, the same in every locale.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace headrace {

// The shortest decimal that reads back as the same number: 0.1, -2, 1e+20, nan.
template <class Float>
std::string shortest_text(Float number) {
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}

// All 16 digits, as used in file names: 00000000000000ff.
inline std::string hex_text(uint64_t number) {
  std::string out(16, '0');
  for (size_t i = 16; number != 0; number >>= 4) out[--i] = "0123456789abcdef"[number & 15];
  return out;
}

// Empty unless the whole text is a decimal number in the range of the type; no whitespace, no plus
// sign.
template <class Number>
std::optional<Number> number_from(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return {};
  return value;
}

// "200GB", "1.5 TiB", "64000000". Empty if the text is not a size.
std::optional<uint64_t> byte_size_of_text(std::string_view text);

}  // namespace headrace
