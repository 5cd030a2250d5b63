// SPDX-License-Identifier: Apache-2.0
// The strings of JSON: read without a copy where they have no escapes, checked to be UTF-8.
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "headrace/base/json_reader.h"
#include "headrace/base/utf8.h"

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
      if (text_.size() > kMaxTokenBytes) fail("a string of more than 64 MiB", start);
      token_ = at_;
      read_escape();
      token_ = at_;
    } else if (c >= 0x80) {
      read_multibyte();
    } else if (c < 0) {
      fail("ends inside the string that begins at byte " + std::to_string(start));
    } else if (c < 0x20) {
      fail("a control character in a string: " + shown(c));
    } else {
      ++at_;  // the first byte of a new window
    }
  }
  return {};
}

void JsonReader::read_multibyte() {
  const size_t length = utf8_length_from(static_cast<uint8_t>(*at_));
  if (length == 0 || !available(length) || utf8_length({at_, length}) != length) {
    return fail("a string is not UTF-8");
  }
  at_ += length;
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
    return c < 0 ? fail("ends inside a string")
                 : fail("invalid escape: a backslash and " + shown(c));
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

}  // namespace headrace
