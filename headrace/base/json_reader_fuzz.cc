// SPDX-License-Identifier: Apache-2.0
// Any text is parsed alike in one piece and through the smallest possible window.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "headrace/base/json_reader.h"

namespace {

using headrace::JsonReader;

// Everything that the reader says about the text.
std::string told(JsonReader& json) {
  std::string out;
  std::string kinds;  // of the open containers
  bool value = true;
  do {
    if (value) {
      switch (json.type()) {
        case JsonReader::Type::kObject:
          json.begin_object();
          kinds += '{';
          break;
        case JsonReader::Type::kArray:
          json.begin_array();
          kinds += '[';
          break;
        case JsonReader::Type::kString:
          out += json.string();
          out += '"';
          break;
        case JsonReader::Type::kNumber: {
          const headrace::JsonNumber number = json.number();
          char bytes[sizeof number.value];
          std::memcpy(bytes, &number.value, sizeof bytes);
          out.append(bytes, sizeof bytes);
          out += std::to_string(number.integer.value_or(-7));
          break;
        }
        case JsonReader::Type::kBool:
          out += json.boolean() ? 't' : 'f';
          break;
        default:
          json.null();
      }
    }
    if (kinds.empty()) break;
    value = kinds.back() == '{' ? json.next_key() : json.next_element();
    if (value && kinds.back() == '{') out += json.key();
    if (!value) {
      out += kinds.back();
      kinds.pop_back();
    }
  } while (json.ok());
  json.end();
  if (!json.ok()) {
    static const headrace::ErrorCode kBad{"HR0000", headrace::ErrorKind::kData, "bad", ""};
    out = json.error(kBad, "f").message();
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  JsonReader whole(std::string_view(reinterpret_cast<const char*>(data), size));
  size_t at = 0;
  JsonReader pieces(
      [&](std::span<uint8_t> out) -> headrace::Result<size_t> {
        const size_t count = std::min({size_t{5}, out.size(), size - at});
        if (count > 0) std::memcpy(out.data(), data + at, count);
        at += count;
        return count;
      },
      16);
  if (told(whole) != told(pieces)) std::abort();
  return 0;
}
