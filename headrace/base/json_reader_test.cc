// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/json_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

namespace headrace {
namespace {

const ErrorCode kBad{"HR0000", ErrorKind::kData, "bad JSON", ""};

// The same text in one piece, and in pieces of a few bytes through the smallest
// window.
void with_readers(std::string_view text, const std::function<void(JsonReader&)>& check) {
  JsonReader whole(text);
  check(whole);
  for (size_t piece : {1, 3, 1000}) {
    size_t at = 0;
    JsonReader pieces(
        [&](std::span<uint8_t> out) -> Result<size_t> {
          const size_t count = std::min({piece, out.size(), text.size() - at});
          std::memcpy(out.data(), text.data() + at, count);
          at += count;
          return count;
        },
        16);
    check(pieces);
  }
}

// Empty if the text is valid JSON; otherwise the error and its position.
std::string mistake(std::string_view text) {
  std::vector<std::string> found;
  with_readers(text, [&](JsonReader& json) {
    json.skip();
    json.end();
    found.push_back(json.ok() ? "" : json.error(kBad, "f.json").message());
  });
  for (const std::string& one : found) EXPECT_EQ(one, found[0]) << text;
  const std::string prefix = "HR0000 bad JSON: ";
  return found[0].starts_with(prefix) ? found[0].substr(prefix.size()) : found[0];
}

JsonNumber number_in(std::string_view text) {
  JsonNumber out;
  with_readers(text, [&](JsonReader& json) {
    out = json.number();
    json.end();
    EXPECT_TRUE(json.ok()) << text;
  });
  return out;
}

std::string string_in(std::string_view text) {
  std::string out;
  with_readers(text, [&](JsonReader& json) {
    out = json.string();
    json.end();
    EXPECT_TRUE(json.ok()) << text;
  });
  return out;
}

TEST(JsonReader, ReadsRequestedValuesAndSkipsTheRest) {
  with_readers(
      R"( {"a" : [1, 2.5, -3], "skipped": [{"x": [[], {}]}, null], "b": "text",
                    "c":true, "d":false,"e":null} )",
      [](JsonReader& json) {
        std::vector<double> numbers;
        std::string text;
        std::vector<bool> flags;
        int nulls = 0;
        for (json.begin_object(); json.next_key();) {
          if (json.key() == "a") {
            for (json.begin_array(); json.next_element();) {
              numbers.push_back(json.number().value);
            }
          } else if (json.key() == "b") {
            text = json.string();
          } else if (json.type() == JsonReader::Type::kBool) {
            flags.push_back(json.boolean());
          } else if (json.type() == JsonReader::Type::kNull) {
            json.null();
            ++nulls;
          } else {
            json.skip();
          }
        }
        json.end();
        EXPECT_TRUE(json.ok());
        EXPECT_EQ(numbers, (std::vector<double>{1, 2.5, -3}));
        EXPECT_EQ(text, "text");
        EXPECT_EQ(flags, (std::vector<bool>{true, false}));
        EXPECT_EQ(nulls, 1);
      });
}

// Expected values: Python's float() of the same text.
TEST(JsonReader, NumbersAreRoundedAsPythonRoundsThem) {
  EXPECT_EQ(number_in("0").value, 0.0);
  EXPECT_TRUE(std::signbit(number_in("-0.0").value));
  EXPECT_EQ(number_in("312.29").value, 312.29);
  EXPECT_EQ(number_in("1e22").value, 1e22);
  EXPECT_EQ(number_in("1e23").value, 0x1.52d02c7e14af6p+76);
  EXPECT_EQ(number_in("9007199254740993").value, 0x1.0p+53);
  EXPECT_EQ(number_in("0.1000000000000000055511151231257827021181583404541015625").value, 0.1);
  EXPECT_EQ(number_in("2.2250738585072011e-308").value, 0x0.fffffffffffffp-1022);
  EXPECT_EQ(number_in("4.9406564584124654e-324").value, 0x1p-1074);
  EXPECT_EQ(number_in("1e999").value, std::numeric_limits<double>::infinity());
  EXPECT_EQ(number_in("-1E+999").value, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(number_in("1e-999").value, 0.0);
  EXPECT_EQ(number_in("0e99999999999999999999").value, 0.0);
  EXPECT_EQ(number_in("1e-99999999999999999999").value, 0.0);
  EXPECT_EQ(number_in(std::string(400, '9')).value, std::numeric_limits<double>::infinity());
  EXPECT_EQ(number_in("0." + std::string(400, '0') + "1e401").value, 1.0);
  EXPECT_EQ(number_in("1" + std::string(400, '0') + "e-400").value, 1.0);
}

TEST(JsonReader, PythonsNanAndInfinityAreNumbers) {
  EXPECT_TRUE(std::isnan(number_in("NaN").value));
  EXPECT_EQ(number_in("Infinity").value, std::numeric_limits<double>::infinity());
  EXPECT_EQ(number_in(" -Infinity ").value, -std::numeric_limits<double>::infinity());
  EXPECT_FALSE(number_in("NaN").integer);
}

TEST(JsonReader, NumbersWithoutADecimalPointThatFitAreIntegers) {
  EXPECT_EQ(number_in("-12").integer, -12);
  EXPECT_EQ(number_in("9223372036854775807").integer, INT64_MAX);
  EXPECT_EQ(number_in("-9223372036854775808").integer, INT64_MIN);
  EXPECT_FALSE(number_in("9223372036854775808").integer);
  EXPECT_FALSE(number_in("-9223372036854775809").integer);
  EXPECT_FALSE(number_in("99999999999999999999").integer);
  EXPECT_FALSE(number_in("1.0").integer);
  EXPECT_FALSE(number_in("1e3").integer);
}

TEST(JsonReader, StringsBecomeUtf8) {
  EXPECT_EQ(string_in(R"("")"), "");
  EXPECT_EQ(string_in(R"("a\"\\\/\b\f\n\r\tz")"), "a\"\\/\b\f\n\r\tz");
  EXPECT_EQ(string_in(R"("\u0041\u00e9\u20AC\ud83d\ude00\u0000")"),
            std::string("A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\0", 11));
  EXPECT_EQ(string_in("\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F\""),
            "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F");
  EXPECT_EQ(string_in('"' + std::string(100000, 'x') + '"'), std::string(100000, 'x'));
}

TEST(JsonReader, SyntaxErrorsHaveTheirOffset) {
  EXPECT_EQ(mistake(""), "the text ends where a value was expected\n  where: f.json, byte 0");
  EXPECT_EQ(mistake("[1, 2"),
            "the text ends where a comma or ] was expected\n  where: f.json, byte 5");
  EXPECT_EQ(mistake("[1 2]"), "a comma or ] was expected, not '2'\n  where: f.json, byte 3");
  EXPECT_EQ(mistake("[1,]"), "a value was expected, not ']'\n  where: f.json, byte 3");
  EXPECT_EQ(mistake("{\"a\" 1}"), "a colon was expected, not '1'\n  where: f.json, byte 5");
  EXPECT_EQ(mistake("{1: 2}"), "a key in quotes was expected, not '1'\n  where: f.json, byte 1");
  EXPECT_EQ(mistake("[01]"), "a number that begins with 0\n  where: f.json, byte 2");
  EXPECT_EQ(mistake("[1.]"), "a digit was expected, not ']'\n  where: f.json, byte 3");
  EXPECT_EQ(mistake("[]]"), "more text after the end: ']'\n  where: f.json, byte 2");
  EXPECT_EQ(mistake("\"ab"),
            "ends inside the string that begins at byte 0\n  where: f.json, byte 3");
  EXPECT_EQ(mistake(std::string_view("\"a\0\"", 4)),
            "a control character in a string: byte 0x00\n  where: f.json, byte 2");
  EXPECT_EQ(mistake("\"\\x\""), "invalid escape: a backslash and 'x'\n  where: f.json, byte 2");
}

TEST(JsonReader, NoSyntaxErrorIsAccepted) {
  for (std::string_view text : {"[1,,2]",
                                "{,}",
                                "{\"a\":}",
                                "{\"a\":1,}",
                                "[}",
                                "{]",
                                "[1}",
                                "+1",
                                ".5",
                                "1e",
                                "1e+",
                                "-",
                                "--1",
                                "nul",
                                "nulll",
                                "True",
                                "tru",
                                "'a'",
                                "\"\\u12\"",
                                "\"\\u12g4\"",
                                "\"\\ud800\"",
                                "\"\\ud800\\u0041\"",
                                "\"\\udc00\"",
                                "-NaN",
                                "Inf",
                                "\"\x80\"",
                                "\"\xC0\x80\"",
                                "\"\xED\xA0\x80\"",
                                "\"\xF4\x90\x80\x80\"",
                                "\"\xE2\x82\"",
                                "\"\n\"",
                                "1 2",
                                "/* */ 1",
                                "\xEF\xBB\xBF[]",
                                "0x10",
                                "1_000"}) {
    EXPECT_NE(mistake(text), "") << text;
  }
}

TEST(JsonReader, NestingIsBounded) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(mistake(nested(128)), "");
  EXPECT_EQ(mistake(nested(129)), "nested more than 128 levels deep\n  where: f.json, byte 128");
  EXPECT_EQ(mistake(std::string(100000, '[')),
            "nested more than 128 levels deep\n  where: f.json, byte 128");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_NE(mistake(objects), "");
}

TEST(JsonReader, TruncatedTextIsRejectedAtEveryLength) {
  const std::string text = R"({"a": [1, -2.5e3, "x\u00e9y", true, null], "b": {"c": [NaN, {}]}})";
  ASSERT_EQ(mistake(text), "");
  for (size_t cut = 0; cut < text.size(); ++cut) EXPECT_NE(mistake(text.substr(0, cut)), "") << cut;
}

TEST(JsonReader, AnErrorOfTheRefillIsReportedUnchanged) {
  int calls = 0;
  JsonReader json([&](std::span<uint8_t> out) -> Result<size_t> {
    if (calls++ > 0) return Error{.code = &kBad, .what = "the disk is gone"};
    out[0] = '[';
    return size_t{1};
  });
  json.skip();
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(json.error(kBad, "f.json").what, "the disk is gone");
}

}  // namespace
}  // namespace headrace
