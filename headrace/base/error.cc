// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/error.h"

namespace headrace {

std::string Where::text() const {
  std::string out = file;
  if (!member.empty()) out += (out.empty() ? "" : " member ") + member;
  if (record >= 0) out += (out.empty() ? "record " : ", record ") + std::to_string(record);
  if (offset >= 0) out += (out.empty() ? "byte " : ", byte ") + std::to_string(offset);
  return out;
}

std::string Error::message() const {
  std::string out;
  if (code) out = std::string(code->id) + " " + std::string(code->title) + ": ";
  out += what;
  if (std::string at = where.text(); !at.empty()) out += "\n  where: " + at;
  if (!note.empty()) out += "\n  note: " + note;
  if (!hint.empty()) out += "\n  help: " + hint;
  return out;
}

void raise(const ErrorCode& code, std::string what, std::string hint) {
  throw Exception(Error{.code = &code, .what = std::move(what), .hint = std::move(hint)});
}

}  // namespace headrace
