// SPDX-License-Identifier: Apache-2.0
// Small functions for names and lines of text.
//
// Upper and lower case are ASCII only, regardless of the locale: the same files must be found on
// every machine. All other bytes are left unchanged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace headrace {

inline char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower_case(c);
  return out;
}

// The text without leading and trailing whitespace.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// A URL (http or https) without its query, which may be a signature; other paths unchanged.
inline std::string_view without_query(std::string_view path) {
  const bool is_web = path.starts_with("http://") || path.starts_with("https://");
  return is_web ? path.substr(0, path.find_first_of("?#")) : path;
}

// Whether the path ends with the suffix, ignoring case, after at least one other character: ".tar"
// alone is not an archive's name.
inline bool has_suffix(std::string_view path, std::string_view suffix) {
  std::string_view text = without_query(path);
  if (text.size() <= suffix.size()) return false;
  text.remove_prefix(text.size() - suffix.size());
  return std::equal(text.begin(), text.end(), suffix.begin(),
                    [](char a, char b) { return lower_case(a) == lower_case(b); });
}

inline bool has_one_suffix(std::string_view text, std::span<const std::string_view> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](std::string_view suffix) { return has_suffix(text, suffix); });
}

// A view of the same bytes, not a copy.
inline std::string_view text_from_bytes(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::span<const uint8_t> bytes_from_text(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Whether `text` is in `bytes` at offset `at`, which may be past the end.
inline bool has_text(std::span<const uint8_t> bytes, std::string_view text, size_t at = 0) {
  return bytes.size() >= at && bytes.size() - at >= text.size() &&
         (text.empty() || std::memcmp(bytes.data() + at, text.data(), text.size()) == 0);
}

// "a" and "b/c" -> "a/b/c"; with an empty second part, the first.
inline std::string joined(std::string_view folder, std::string_view rest) {
  std::string out(folder);
  if (rest.empty()) return out;
  if (!out.empty() && out.back() != '/') out += '/';
  return out += rest;
}

}  // namespace headrace
