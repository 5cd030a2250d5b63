// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/error.h"

#include "headrace/base/registry.h"
#include "headrace/base/secrets.h"

namespace headrace {
namespace {

// Names come from files, and must not move a terminal's cursor. Text from Python functions may have
// several lines.
std::string shown(std::string_view given) {
  const std::string text = without_secrets(given);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= 0x20 && byte != 0x7f) || byte == '\n' || byte == '\t') {
      out += c;
    } else {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

}  // namespace

ErrorCode::ErrorCode(std::string_view id, ErrorKind kind, std::string_view title,
                     std::string_view explanation, bool of_record)
    : id(id), kind(kind), title(title), explanation(explanation), of_record(of_record) {
  Registry<ErrorCode>::add(*this);
}

std::string Where::text() const {
  std::string out = without_secrets(file);
  if (!member.empty()) out += (out.empty() ? "" : " member ") + member;
  if (record >= 0) out += (out.empty() ? "record " : ", record ") + std::to_string(record);
  if (offset >= 0) out += (out.empty() ? "byte " : ", byte ") + std::to_string(offset);
  return out;
}

std::string Error::message() const {
  std::string out;
  if (code) out = std::string(code->id) + " " + std::string(code->title) + ": ";
  out += shown(what);
  if (std::string at = where.text(); !at.empty()) out += "\n  where: " + shown(at);
  if (!note.empty()) out += "\n  note: " + shown(note);
  if (!hint.empty()) out += "\n  help: " + shown(hint);
  return out;
}

void raise(const ErrorCode& code, std::string what, std::string hint) {
  throw Exception(Error{.code = &code, .what = std::move(what), .hint = std::move(hint)});
}

}  // namespace headrace
