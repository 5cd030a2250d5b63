// SPDX-License-Identifier: Apache-2.0
// Expected texts are made by Python's json.dumps(..., ensure_ascii=False); Python also reads them.
#include "headrace/base/json_writer.h"

#include <gtest/gtest.h>

#include "headrace/base/json_reader.h"

namespace headrace {
namespace {

std::string text_of_value(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return json.text();
}

TEST(JsonWriter, WritesCommasOnlyBetweenItems) {
  JsonWriter json;
  json.begin_object();
  json.member("key", std::string_view("cat/1.jpg"));
  json.key("sizes");
  json.begin_array();
  json.value(int64_t{3});
  json.begin_array();
  json.end_array();
  json.begin_object();
  json.end_object();
  json.value(int64_t{-4});
  json.end_array();
  json.member("n", INT64_MIN);
  json.end_object();
  EXPECT_EQ(json.text(),
            R"({"key": "cat/1.jpg", "sizes": [3, [], {}, -4], "n": -9223372036854775808})");
}

TEST(JsonWriter, EscapesCharactersThatJsonForbids) {
  EXPECT_EQ(text_of_value("a\"b\\c\x01\n\xC3\xA4\xE2\x82\xAC"),
            "\"a\\\"b\\\\c\\u0001\\n\xC3\xA4\xE2\x82\xAC\"");
  EXPECT_EQ(text_of_value("\xC3"), "\"\\udcc3\"");
  EXPECT_EQ(text_of_value("\xED\xA0\x80"), "\"\\udced\\udca0\\udc80\"");
  EXPECT_EQ(text_of_value({"\0", 1}), "\"\\u0000\"");
}

TEST(JsonWriter, AcceptsOnlyValidUtf8) {
  for (const char* text : {"\x7F", "\xC2\x80", "\xE0\xA0\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80",
                           "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(text_of_value(text), '"' + std::string(text) + '"');
  }
  // A lone continuation byte, an overlong form, a code point beyond U+10FFFF, a truncated sequence,
  // a sequence interrupted by another character.
  for (const char* text : {"\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF",
                           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xF0\x90\x80", "\xE2\x82z"}) {
    const std::string out = text_of_value(text);
    EXPECT_EQ(out.find_first_not_of("\"\\udc0123456789abcefz"), out.npos) << out;
    EXPECT_EQ(out.find("\"\\udc"), 0u) << out;
  }
}

TEST(JsonWriter, WritesWhatTheReaderReads) {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  all += "\xC3\xA9";
  const std::string text = text_of_value(all);
  JsonReader json{std::string_view(text)};
  EXPECT_EQ(json.string(), all);
}

}  // namespace
}  // namespace headrace
