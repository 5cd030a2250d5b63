// SPDX-License-Identifier: Apache-2.0
// Checks of a plug-in's table, shared by everything that it can declare. Each failure throws
// HR0572, with the file and the invalid part.
//
// Used by the thread that loads a plug-in.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/parameters.h"
#include "headrace/plugin.h"

namespace headrace {

class DeclarationCheck {
 public:
  explicit DeclarationCheck(std::string path) : path_(std::move(path)) {}

  [[noreturn]] void refuse(const std::string& what, std::string hint = {}) const;
  // Sets the part that later failures refer to: "Vignette"; empty: the whole table.
  void set_subject(std::string subject) { subject_ = std::move(subject); }

  // A text of 1 to 65535 bytes, UTF-8. `what`: "its help".
  std::string text(const char* given, const std::string& what) const;
  // The name of a part that is called like a function. `part`: "format".
  std::string function_name(const char* given, const std::string& part) const;
  // `first`: bytes of an entry in version 1 of the interface.
  void check_list(const void* data, uint32_t count, uint32_t size, uint32_t first, uint32_t most,
                  const std::string& what) const;
  // Checks that this points into a loaded library.
  template <class Function>
  void check_function(Function* function, const std::string& name) const {
    Dl_info info{};
    if (!function) refuse(name + " is NULL");
    if (!dladdr(reinterpret_cast<const void*>(function), &info))
      refuse(name + " does not point to a function");
  }
  void check_flags(uint32_t given, uint32_t known, const std::string& name = "flags") const {
    if (given & ~known)
      refuse(name + " has unknown bits", "it was built for a later version of Headrace");
  }

  // Converts parameters to the engine's form. `texts` receives the texts that they point to.
  std::vector<Param> params(const headrace_params& list, std::deque<std::string>& texts);

 private:
  Param param(const headrace_param& given, std::deque<std::string>& texts);
  void set_range(const headrace_param& given, Param& param) const;
  void set_choices(const headrace_param& given, Param& param, std::deque<std::string>& texts) const;
  void set_type(const headrace_param& given, Param& param) const;

  const std::string path_;
  std::string subject_;
};

// A copy of an entry of a list; members that the library does not have are zero.
template <class List>
auto copy_of(const List& list, uint32_t i) {
  std::remove_cvref_t<decltype(*list.data)> out{};
  const auto* from = reinterpret_cast<const uint8_t*>(list.data) + size_t(i) * list.size;
  std::memcpy(&out, from, std::min<size_t>(sizeof out, list.size));
  return out;
}

// Whether a name has 1 to 64 bytes, which are ASCII letters, digits and the characters of `more`,
// and begins as in the example.
bool is_class_name(std::string_view name);                             // "Vignette"
bool is_lowercase_name(std::string_view name, std::string_view more);  // "qoi"
bool is_argument_name(std::string_view name);                          // "_strength"

}  // namespace headrace
