// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/json_writer.h"

#include <cstdio>

#include "headrace/base/utf8.h"

namespace headrace {
namespace {

void append_quoted(std::string_view bytes, std::string& out) {
  out += '"';
  while (!bytes.empty()) {
    const size_t length = utf8_length(bytes);
    const auto byte = static_cast<uint8_t>(bytes.front());
    if (byte == '"' || byte == '\\') {
      out += {'\\', bytes.front()};
    } else if (byte == '\n') {
      out += "\\n";
    } else if (length == 0 || byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", length == 0 ? 0xDC00u + byte : byte);
      out += escape;
    } else {
      out += bytes.substr(0, length);
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

}  // namespace

void JsonWriter::begin(char bracket) {
  separate();
  text_ += bracket;
  first_ = true;
}

void JsonWriter::end(char bracket) {
  text_ += bracket;
  first_ = false;
}

void JsonWriter::separate() {
  if (!first_) text_ += ", ";
  first_ = false;
}

void JsonWriter::key(std::string_view name) {
  separate();
  append_quoted(name, text_);
  text_ += ": ";
  first_ = true;  // its value needs no comma
}

void JsonWriter::value(std::string_view text) {
  separate();
  append_quoted(text, text_);
}

void JsonWriter::value(int64_t number) {
  separate();
  text_ += std::to_string(number);
}

}  // namespace headrace
