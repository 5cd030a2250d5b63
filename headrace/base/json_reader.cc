// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/json_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "headrace/base/json_decimal.h"

namespace headrace {
namespace {

bool is_digit(int c) { return c >= '0' && c <= '9'; }
bool is_blank(int c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

std::string JsonReader::shown(int c) {
  if (c > 0x20 && c < 0x7F) return std::string("'") + static_cast<char>(c) + "'";
  constexpr char kHex[] = "0123456789abcdef";
  return std::string("byte 0x") + kHex[c >> 4 & 15] + kHex[c & 15];
}

JsonReader::JsonReader(std::string_view text, uint64_t offset) { reset(text, offset); }

JsonReader::JsonReader(Refill refill, size_t window)
    : refill_(std::move(refill)), window_(std::max<size_t>(window, 16)) {
  begin_ = at_ = end_ = reinterpret_cast<const char*>(window_.data());
}

void JsonReader::reset(std::string_view text, uint64_t offset) {
  begin_ = at_ = text.data();
  end_ = begin_ + text.size();
  token_ = nullptr;
  base_ = offset;
  refill_ = {};
  depth_ = 0;
  failed_ = false;
  what_.clear();
  refill_error_.reset();
}

bool JsonReader::more() {
  if (!refill_ || failed_) return false;
  const char* keep = token_ ? token_ : at_;
  const size_t kept = end_ - keep, before = at_ - keep;
  if (kept == window_.size()) {
    if (kept > kMaxTokenBytes / 2) {
      fail("a string or number of more than 64 MiB");
      return false;
    }
    Buffer larger(kept * 2);
    std::memcpy(larger.data(), keep, kept);
    base_ += keep - begin_;
    window_ = std::move(larger);
  } else {
    base_ += keep - begin_;
    std::memmove(window_.data(), keep, kept);
  }
  begin_ = reinterpret_cast<const char*>(window_.data());
  at_ = begin_ + before;
  end_ = begin_ + kept;
  if (token_) token_ = begin_;
  Result<size_t> got = refill_({window_.data() + kept, window_.size() - kept});
  if (!got) {
    fail({});
    refill_error_ = std::move(got.error());
    return false;
  }
  end_ += *got;
  if (*got == 0) refill_ = {};
  return *got > 0;
}

bool JsonReader::available(size_t bytes) {
  while (size_t(end_ - at_) < bytes) {
    if (!more()) return false;
  }
  return true;
}

void JsonReader::fail(std::string what, uint64_t offset) {
  if (failed_) return;
  failed_ = true;
  what_ = std::move(what);
  failed_at_ = offset;
  base_ += end_ - begin_;  // nothing more is read
  begin_ = at_ = end_;
  token_ = nullptr;
  refill_ = {};
}

Error JsonReader::error(const ErrorCode& code, const std::string& file) const {
  if (refill_error_) return *refill_error_;
  return Error{.code = &code,
               .what = what_,
               .where = Where{.file = file, .offset = static_cast<int64_t>(failed_at_)}};
}

int JsonReader::peek() {
  for (;;) {
    while (at_ < end_ && is_blank(*at_)) ++at_;
    if (at_ < end_) return static_cast<unsigned char>(*at_);
    if (!more()) return -1;
  }
}

bool JsonReader::take(char c) {
  if (peek() != c) return false;
  ++at_;
  return true;
}

void JsonReader::unexpected(const char* wanted) {
  const int c = now();
  if (c < 0) return fail("the text ends where " + std::string(wanted) + " was expected");
  fail(std::string(wanted) + " was expected, not " + shown(c));
}

JsonReader::Type JsonReader::type() {
  const int c = peek();
  switch (c) {
    case '{':
      return Type::kObject;
    case '[':
      return Type::kArray;
    case '"':
      return Type::kString;
    case 't':
    case 'f':
      return Type::kBool;
    case 'n':
      return Type::kNull;
    case '-':
    case 'N':
    case 'I':
      return Type::kNumber;
    default:
      return is_digit(c) ? Type::kNumber : Type::kNone;
  }
}

void JsonReader::open(char bracket, bool object) {
  if (!take(bracket)) return unexpected(object ? "an object" : "an array");
  if (depth_ == kMaxDepth) return fail("nested more than 128 levels deep", offset() - 1);
  ++depth_;
  object_[depth_] = object;
  first_[depth_] = true;
}

void JsonReader::begin_object() { open('{', true); }
void JsonReader::begin_array() { open('[', false); }

bool JsonReader::next_key() {
  if (failed_) return false;
  if (take('}')) {
    --depth_;
    return false;
  }
  if (!first_[depth_] && !take(',')) unexpected("a comma or }");
  first_[depth_] = false;
  if (peek() != '"') unexpected("a key in quotes");
  if (failed_) return false;
  key_ = read_string();
  if (!take(':')) unexpected("a colon");
  peek();  // now offset() is where the value begins
  return !failed_;
}

bool JsonReader::next_element() {
  if (failed_) return false;
  if (take(']')) {
    --depth_;
    return false;
  }
  if (!first_[depth_] && !take(',')) unexpected("a comma or ]");
  first_[depth_] = false;
  if (type() == Type::kNone) unexpected("a value");
  return !failed_;
}

void JsonReader::skip() {
  const int outside = depth_;
  bool value = true;
  while (!failed_) {
    if (value) {
      switch (type()) {
        case Type::kObject:
          begin_object();
          break;
        case Type::kArray:
          begin_array();
          break;
        case Type::kString:
          string();
          break;
        case Type::kNumber:
          number();
          break;
        case Type::kBool:
          boolean();
          break;
        case Type::kNull:
          null();
          break;
        case Type::kNone:
          unexpected("a value");
      }
    }
    if (depth_ == outside) return;
    value = object_[depth_] ? next_key() : next_element();
  }
}

void JsonReader::end() {
  if (peek() >= 0) fail("more text after the end: " + shown(peek()));
}

void JsonReader::word(std::string_view text) {
  token_ = at_;
  if (available(text.size()) && std::string_view(at_, text.size()) == text) {
    at_ += text.size();
    token_ = nullptr;
    return;
  }
  fail("a value was expected, not " + shown(now()));
}

bool JsonReader::boolean() {
  const int c = peek();
  if (c == 't') {
    word("true");
    return !failed_;
  }
  if (c == 'f') {
    word("false");
  } else {
    unexpected("true or false");
  }
  return false;
}

void JsonReader::null() {
  if (peek() == 'n') return word("null");
  unexpected("null");
}

void JsonReader::read_digits(JsonDecimal& out, bool fraction) {
  if (!is_digit(now())) return unexpected("a digit");
  do {
    const char* at = at_;
    for (; at < end_ && is_digit(*at); ++at) out.add(*at - '0', fraction);
    at_ = at;
  } while (at_ == end_ && more());
}

// REQUIRES: at_ is after the e.
void JsonReader::read_exponent(JsonDecimal& out) {
  constexpr int64_t kMax = 1000000000;
  int c = now();
  const bool down = c == '-';
  if (down || c == '+') ++at_;
  if (!is_digit(now())) return unexpected("a digit");
  int64_t exponent = 0;
  for (c = now(); is_digit(c); c = now()) {
    exponent = std::min(exponent * 10 + (c - '0'), kMax);
    ++at_;
  }
  out.shift(down ? -exponent : exponent);
}

JsonNumber JsonReader::number() {
  JsonDecimal decimal;
  bool integer = true;
  int c = peek();
  token_ = at_;
  decimal.negative = c == '-';
  if (decimal.negative) {
    ++at_;
    c = now();
  }
  if (c == 'N' && !decimal.negative) {
    word("NaN");
    return {.value = std::numeric_limits<double>::quiet_NaN()};
  }
  if (c == 'I') {
    word("Infinity");
    return {.value = std::numeric_limits<double>::infinity() * (decimal.negative ? -1 : 1)};
  }
  if (!is_digit(c)) {
    unexpected("a number");
  } else if (c == '0') {
    ++at_;
    if (is_digit(now())) fail("a number that begins with 0");
  } else {
    read_digits(decimal, false);
  }
  if (now() == '.') {
    ++at_;
    integer = false;
    read_digits(decimal, true);
  }
  if (c = now(); c == 'e' || c == 'E') {
    ++at_;
    integer = false;
    read_exponent(decimal);
  }
  if (failed_) return {};
  JsonNumber out{.value = decimal.value({token_, size_t(at_ - token_)})};
  if (integer) out.integer = decimal.integer();
  token_ = nullptr;
  return out;
}

}  // namespace headrace
