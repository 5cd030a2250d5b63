// SPDX-License-Identifier: Apache-2.0
// The strings of JSON: read without a copy where they have no escapes, checked to be UTF-8.
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "headrace/base/json_reader.h"

namespace headrace {
namespace {

// Up to the first byte that is a quote, a backslash, a control character or not ASCII.
const char* plain_end(const char* at, const char* end) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  while (end - at >= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    const uint64_t quote = word ^ kOnes * '"', slash = word ^ kOnes * '\\';
    const uint64_t found = ((quote - kOnes) & ~quote) | ((slash - kOnes) & ~slash) |
                           ((word - kOnes * 0x20) & ~word) | word;
    if (found & kHigh) return at + std::countr_zero(found & kHigh) / 8;
    at += 8;
  }
  while (at < end && *at >= 0x20 && *at != '"' && *at != '\\') ++at;
  return at;
}

void append_utf8(unsigned code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// Bytes of the character that begins with `first`, and the range of its second
// (Unicode 15, table 3-7, which leaves out surrogates and overlong forms). 0:
// none begins so.
struct Multibyte {
  int bytes;
  unsigned char low, high;
};
Multibyte multibyte_of(unsigned char first) {
  if (first >= 0xC2 && first <= 0xDF) return {2, 0x80, 0xBF};
  if (first == 0xE0) return {3, 0xA0, 0xBF};
  if (first == 0xED) return {3, 0x80, 0x9F};
  if (first >= 0xE1 && first <= 0xEF) return {3, 0x80, 0xBF};
  if (first == 0xF0) return {4, 0x90, 0xBF};
  if (first >= 0xF1 && first <= 0xF3) return {4, 0x80, 0xBF};
  if (first == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

std::string_view JsonReader::string() {
  if (peek() == '"') return read_string();
  unexpected("a string");
  return {};
}

std::string_view JsonReader::read_string() {
  const uint64_t start = offset();
  token_ = ++at_;
  bool escaped = false;
  while (!failed_) {
    at_ = plain_end(at_, end_);
    const int c = now();
    if (c == '"') {
      std::string_view out(token_, at_ - token_);
      if (escaped) out = text_.append(out);
      ++at_;
      token_ = nullptr;
      return out;
    }
    if (c == '\\') {
      if (!std::exchange(escaped, true)) text_.clear();
      text_.append(token_, at_ - token_);
      if (text_.size() > kMostTokenBytes) fail("a string of more than 64 MiB", start);
      token_ = at_;
      read_escape();
      token_ = at_;
    } else if (c >= 0x80) {
      read_multibyte();
    } else if (c < 0) {
      fail("it ends inside a string that begins at byte " + std::to_string(start));
    } else if (c < 0x20) {
      fail("a control character in a string: " + shown(c));
    } else {
      ++at_;  // the first of a new window
    }
  }
  return {};
}

void JsonReader::read_multibyte() {
  const Multibyte wanted = multibyte_of(static_cast<unsigned char>(*at_));
  bool good = wanted.bytes > 0 && available(wanted.bytes);
  if (good) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(at_);
    good = bytes[1] >= wanted.low && bytes[1] <= wanted.high;
    for (int i = 2; i < wanted.bytes; ++i) good &= bytes[i] >> 6 == 2;
  }
  if (!good) return fail("a string is no UTF-8");
  at_ += wanted.bytes;
}

// Four digits at at_.
unsigned JsonReader::read_hex() {
  unsigned value = 0;
  if (available(4)) {
    const auto [end, error] = std::from_chars(at_, at_ + 4, value, 16);
    if (error == std::errc() && end == at_ + 4) {
      at_ += 4;
      return value;
    }
  }
  fail("\\u without four hexadecimal digits");
  return 0;
}

// REQUIRES: at_ is at the backslash.
void JsonReader::read_escape() {
  ++at_;
  const int c = now();
  constexpr std::string_view kMarks = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  if (const size_t at = kMarks.find(static_cast<char>(c)); c >= 0 && at != kMarks.npos) {
    ++at_;
    text_ += kMeanings[at];
    return;
  }
  if (c != 'u') {
    return c < 0 ? fail("it ends inside a string")
                 : fail("no escape is a backslash and " + shown(c));
  }
  ++at_;
  unsigned code = read_hex();
  if (code >= 0xD800 && code < 0xDC00) {  // the first half of a pair
    unsigned second = 0;
    if (available(2) && at_[0] == '\\' && at_[1] == 'u') {
      at_ += 2;
      second = read_hex();
    }
    if (second < 0xDC00 || second > 0xDFFF) return fail("half of a surrogate pair in a string");
    code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
  } else if (code >= 0xDC00 && code < 0xE000) {
    return fail("half of a surrogate pair in a string");
  }
  if (!failed_) append_utf8(code, text_);
}

void append_json_string(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace headrace
