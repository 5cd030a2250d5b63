// SPDX-License-Identifier: Apache-2.0
// A pull parser of JSON (RFC 8259) whose memory does not grow with the document: the caller
// requests the parts that it expects, in the order of the text, and skips the rest, which is
// validated all the same. NaN, Infinity and -Infinity are numbers, since Python writes them.
//
//   JsonReader json(text);
//   for (json.begin_object(); json.next_key();) {
//     if (json.key() == "size") size = json.number().value; else json.skip();
//   }
//   json.end();
//   if (!json.ok()) return json.error(kBadThing, path);
//
// After the first mistake ok() is false, every loop ends and every value is
// empty; the mistake and its byte offset are kept. Nesting is bounded and
// nothing recurses. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"

namespace headrace {

struct JsonDecimal;

struct JsonNumber {
  double value = 0;                     // rounded to nearest; infinite where the text is too large
  std::optional<int64_t> integer = {};  // where it is written as one, and fits
};

class JsonReader {
 public:
  enum class Type : uint8_t { kObject, kArray, kString, kNumber, kBool, kNull, kNone };
  static constexpr int kMaxDepth = 128;
  static constexpr size_t kMostTokenBytes = size_t{64} << 20;

  // Fills part of the span and says how much; 0 at the end.
  using Refill = std::function<Result<size_t>(std::span<uint8_t>)>;

  // The text stays the caller's. `offset`: where in the file it begins, for
  // messages.
  explicit JsonReader(std::string_view text, uint64_t offset = 0);
  explicit JsonReader(Refill refill, size_t window = size_t{1} << 20);

  // Begins anew on another text; memory stays.
  void reset(std::string_view text, uint64_t offset);

  Type type();  // of the next value; kNone where there is none

  void begin_object();
  bool next_key();                               // false: the object has ended
  std::string_view key() const { return key_; }  // valid until the next key
  void begin_array();
  bool next_element();  // false: the array has ended

  // The next value, which must be of this type.
  JsonNumber number();
  std::string_view string();  // UTF-8; valid until the next call
  bool boolean();
  void null();
  void skip();
  void end();  // nothing but blanks may be left

  uint64_t offset() const { return base_ + uint64_t(at_ - begin_); }  // of what is read next
  bool ok() const { return !failed_; }
  // As if the text were wrong at `offset`; the first mistake counts.
  void fail(std::string what, uint64_t offset);
  void fail(std::string what) { fail(std::move(what), offset()); }
  // The error: that of the refill, or one of `code`. REQUIRES: !ok().
  Error error(const ErrorCode& code, const std::string& file) const;

 private:
  static std::string shown(int c);  // a byte, for messages
  bool more();                      // appends to the window, dropping what stands before token_
  int peek();                       // the next byte that is no blank; -1 at the end
  bool take(char c);                // the next byte that is no blank, if it is this one
  void open(char bracket, bool object);
  void unexpected(const char* wanted);
  void word(std::string_view text);
  std::string_view read_string();
  void read_escape();
  unsigned read_hex();
  void read_multibyte();
  void read_digits(JsonDecimal& out, bool fraction);
  void read_exponent(JsonDecimal& out);
  bool available(size_t bytes);  // whether this many follow at_
  int now() { return at_ < end_ || more() ? static_cast<unsigned char>(*at_) : -1; }

  const char* begin_ = nullptr;  // of the window
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  const char* token_ = nullptr;  // start of the part to keep in the window; null: nothing
  uint64_t base_ = 0;            // offset of begin_
  Refill refill_;
  Buffer window_;
  std::string key_, text_;  // text_: a string with escapes
  int depth_ = 0;
  std::array<bool, kMaxDepth + 1> object_, first_;  // of the open containers
  bool failed_ = false;
  std::string what_;
  uint64_t failed_at_ = 0;
  std::optional<Error> refill_error_;
};

}  // namespace headrace
