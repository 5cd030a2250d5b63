// SPDX-License-Identifier: Apache-2.0
#include "headrace/plugin/declaration_check.h"

#include "headrace/base/error.h"
#include "headrace/base/utf8.h"

namespace headrace {
namespace {

const ErrorCode kInvalid{
    "HR0572", ErrorKind::kConfig, "invalid plug-in",
    "The table that the plug-in returns violates a rule of headrace/plugin.h: a name or function "
    "is missing, a name is in use or not an identifier, a default is out of range, or a size is "
    "smaller than in the first version of the interface. No part of the plug-in was registered."};

constexpr size_t kLongestName = 64;

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower_or_underscore(char c) { return is_lower(c) || c == '_'; }
bool is_name(std::string_view name, bool (*first)(char), std::string_view more) {
  const auto fits = [&](char c) {
    return is_lower(c) || is_upper(c) || (c >= '0' && c <= '9') ||
           more.find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kLongestName && first(name.front()) &&
         std::ranges::all_of(name, fits);
}

}  // namespace

bool is_class_name(std::string_view name) {
  return is_name(name, is_upper, "_") && name != "True" && name != "False" && name != "None";
}

bool is_lowercase_name(std::string_view name, std::string_view more) {
  return is_name(name, is_lower, more) && std::ranges::none_of(name, is_upper);
}

bool is_argument_name(std::string_view name) { return is_name(name, is_lower_or_underscore, "_"); }

void DeclarationCheck::refuse(const std::string& what, std::string hint) const {
  const std::string where = subject_.empty() ? "" : "[" + subject_ + "] ";
  raise(kInvalid, path_ + ": " + where + what, std::move(hint));
}

std::string DeclarationCheck::text(const char* given, const std::string& what) const {
  if (!given) refuse(what + " is NULL");
  const size_t length = strnlen(given, 1 << 16);
  const std::string out(given, length);
  if (length == 0) refuse(what + " is empty");
  if (length == 1 << 16) refuse(what + " has more than 65535 bytes, or no terminating NUL");
  if (!is_utf8({reinterpret_cast<const uint8_t*>(given), length})) refuse(what + " is not UTF-8");
  return out;
}

std::string DeclarationCheck::function_name(const char* given, const std::string& part) const {
  const std::string name = text(given, "a " + part + "'s name");
  if (!is_argument_name(name) || !is_lowercase_name(name, "_"))
    refuse("the " + part + " \"" + name + "\" must be named like a function: a-z, 0-9 and _");
  return name;
}

void DeclarationCheck::check_list(const void* data, uint32_t count, uint32_t size, uint32_t first,
                                  uint32_t most, const std::string& what) const {
  if (count == 0) return;
  if (!data) refuse("its list of " + what + " is NULL, with " + std::to_string(count) + " entries");
  if (count > most)
    refuse("it lists " + std::to_string(count) + " " + what + ", but the limit is " +
           std::to_string(most));
  if (size < first || size % alignof(void*) != 0)
    refuse("an entry of its list of " + what + " has " + std::to_string(size) +
               " bytes, but version 1 has " + std::to_string(first),
           "HEADRACE_LIST(array) fills in count and size");
}

}  // namespace headrace
