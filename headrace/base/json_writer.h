// SPDX-License-Identifier: Apache-2.0
// Writes JSON text sequentially: {"key": "cat/1.jpg", "sizes": [3, 4]}.
//
// Strings may hold any bytes, as file names do. Bytes that are not valid UTF-8 are written as the
// surrogates that Python's os.fsdecode returns, \udc80 to \udcff: the line stays JSON, and the name
// can be restored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

class JsonWriter {
 public:
  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  void key(std::string_view name);  // in an object, before each value
  void value(std::string_view text);
  void value(int64_t number);

  template <class Value>
  void member(std::string_view name, const Value& content) {
    key(name);
    value(content);
  }

  const std::string& text() const { return text_; }

 private:
  void begin(char bracket);
  void end(char bracket);
  void separate();

  std::string text_;
  bool first_ = true;  // the next entry is the first of its container
};

}  // namespace headrace
