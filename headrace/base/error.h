// SPDX-License-Identifier: Apache-2.0
// Errors as values, and results that carry them.
//
// There are two kinds of failure. A *data error* (a corrupt image, a short read) travels as
// Result<T> up to the executor, which applies the user's policy. *Misuse* (an invalid parameter, an
// impossible pipeline) is thrown as Exception before any thread starts. Asserts are for our own
// bugs.
//
// An ErrorCode is declared once, next to the code that raises it, and registers itself; `headrace
// explain CODE` prints it. Codes are grouped by layer: HR01 use of the API, fields and pipelines,
// HR02 storage, HR03 codecs and images, HR04 formats, HR05 operators, HR06 Python functions, HR07
// executor, HR08 devices, delivery and frameworks, HR09 the doctor and the watch. When the hundred
// codes of a layer are used up, numbering continues a thousand higher: HR14 is also formats.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace headrace {

enum class ErrorKind {
  kConfig,       // the call makes no sense; ValueError in Python
  kData,         // these bytes are bad; subject to on_error
  kResource,     // a cap or the memory limit is exceeded; subject to on_error
  kStorage,      // the bytes could not be read; OSError in Python
  kUnsupported,  // valid, but not supported; subject to on_error
};

// A constant that can be looked up by its id while its library is loaded.
struct ErrorCode {
  ErrorCode(std::string_view id, ErrorKind kind, std::string_view title,
            std::string_view explanation, bool of_record = false);
  ErrorCode(const ErrorCode&) = delete;

  std::string_view id;  // "HR0305"
  ErrorKind kind;
  std::string_view title;        // "truncated JPEG"
  std::string_view explanation;  // meaning, causes and remedies; one paragraph
  // For kStorage and kConfig: the error concerns a single record (its file vanished, a Python
  // function failed on it), so on_error applies. Otherwise errors of these kinds end the run, those
  // of storage after retries.
  bool of_record;
};

// A location in the dataset. Unknown parts are empty or -1.
struct Where {
  std::string file = {};
  std::string member = {};
  int64_t record = -1;
  int64_t offset = -1;  // bytes from the start of the file (or member)
  std::string text() const;
};

struct Error {
  const ErrorCode* code = nullptr;
  std::string what = {};  // one line: what was expected and what was found
  Where where = {};
  std::string note = {};  // further facts
  std::string hint = {};  // what to do about it
  // "HR0305 damaged JPEG: <what>", followed by `where`, `note` and `hint`, one line each.
  std::string message() const;
};

// Misuse. REQUIRES for throwing: no worker thread of the call has started.
class Exception : public std::exception {
 public:
  explicit Exception(Error error) : error_(std::move(error)), text_(error_.message()) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const Error& error() const { return error_; }

 private:
  Error error_;
  std::string text_;
};

// Whether an error concerns a single record, so that the user's on_error decides what happens;
// otherwise the run ends. A failing storage or misuse would fail the next record as well, and
// skipping all records would hide it. A user's function that fails on a record concerns that record
// alone (ErrorCode::of_record).
inline bool is_bad_record(const Error& error) {
  const ErrorKind kind = error.code->kind;
  return error.code->of_record || (kind != ErrorKind::kStorage && kind != ErrorKind::kConfig);
}

[[noreturn]] void raise(const ErrorCode& code, std::string what, std::string hint = {});

// A value or an Error. Member names follow std::expected.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::make_unique<Error>(std::move(error))) {}
  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  Error& error() { return *error_; }
  const Error& error() const { return *error_; }

 private:
  std::optional<T> value_;
  std::unique_ptr<Error> error_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::make_unique<Error>(std::move(error))) {}
  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  Error& error() { return *error_; }
  const Error& error() const { return *error_; }

 private:
  std::unique_ptr<Error> error_;
};

// Removes from all URLs in a text the user name and password before the host, and the query, which
// may hold signatures and tokens. Applied to every error message.
std::string without_secrets(std::string_view text);

}  // namespace headrace
