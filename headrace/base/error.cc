// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/error.h"

#include <algorithm>

#include "headrace/base/registry.h"

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

std::string without_secrets(std::string_view text) {
  std::string out;
  for (;;) {
    const size_t colon = text.find("://");
    if (colon == std::string_view::npos) break;
    const size_t host = colon + 3;
    out.append(text.substr(0, host));
    text.remove_prefix(host);
    const size_t end = std::min(text.find_first_of("\"\n"), text.size());
    const std::string_view authority = text.substr(0, std::min(end, text.find_first_of("/? ")));
    if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
      text.remove_prefix(at + 1);  // name:password
    }
    const size_t question = text.find('?');
    if (question >= std::min(text.find_first_of("\"\n"), text.size())) continue;
    const size_t over = std::min(text.find_first_of(" \t\"\n", question), text.size());
    const bool is_query =
        text.substr(question, over - question).find('=') != std::string_view::npos;
    if (!is_query) continue;  // a wildcard
    out.append(text.substr(0, question)).append("?...");
    text.remove_prefix(over);
  }
  return out.append(text);
}

}  // namespace headrace
