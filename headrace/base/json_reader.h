// SPDX-License-Identifier: Apache-2.0
// A pull parser of JSON (RFC 8259) whose memory does not grow with the document: the caller
// requests the parts that it expects, in document order, and skips the rest, which is still
// validated. NaN, Infinity and -Infinity are accepted as numbers, since Python writes them.
//
//   JsonReader json(text);
//   for (json.begin_object(); json.next_key();) {
//     if (json.key() == "size") size = json.number().value; else json.skip();
//   }
//   json.end();
//   if (!json.ok()) return json.error(kBadThing, path);
//
// After the first error ok() is false, every loop ends and every value is empty; the error and its
// byte offset are kept. Nesting depth is limited and nothing recurses. For one thread at a time.
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
  double value = 0;                     // rounded to nearest; infinite if out of range
  std::optional<int64_t> integer = {};  // if it is written as an integer, and fits
};

class JsonReader {
 public:
  enum class Type : uint8_t { kObject, kArray, kString, kNumber, kBool, kNull, kNone };
  static constexpr int kMaxDepth = 128;
  static constexpr size_t kMaxTokenBytes = size_t{64} << 20;

  // Fills the span, perhaps partly, and returns how many bytes; 0 at the end.
  using Refill = std::function<Result<size_t>(std::span<uint8_t>)>;

  // The caller owns the text. `offset`: where the text begins in its file, for messages.
  explicit JsonReader(std::string_view text, uint64_t offset = 0);
  explicit JsonReader(Refill refill, size_t window = size_t{1} << 20);

  // Restarts with another text; reuses the memory.
  void reset(std::string_view text, uint64_t offset);

  Type type();  // of the next value; kNone if there is none

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
  void end();  // only whitespace may follow

  uint64_t offset() const { return base_ + uint64_t(at_ - begin_); }  // of the next byte to read
  bool ok() const { return !failed_; }
  // Reports an error at `offset`, as if the text were invalid there; only the first error is kept.
  void fail(std::string what, uint64_t offset);
  void fail(std::string what) { fail(std::move(what), offset()); }
  // The error: the one that `refill` returned, or else one with `code`. REQUIRES: !ok().
  Error error(const ErrorCode& code, const std::string& file) const;

 private:
  static std::string shown(int c);  // a byte, for messages
  bool more();                      // appends to the window, dropping what precedes token_
  int peek();                       // the next byte after whitespace; -1 at the end
  bool take(char c);                // consumes the next byte after whitespace, if it is `c`
  void open(char bracket, bool object);
  void unexpected(const char* wanted);
  void word(std::string_view text);
  std::string_view read_string();
  void read_escape();
  unsigned read_hex();
  void read_multibyte();
  void read_digits(JsonDecimal& out, bool fraction);
  void read_exponent(JsonDecimal& out);
  bool available(size_t bytes);  // whether that many follow at_
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
