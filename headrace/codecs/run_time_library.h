// SPDX-License-Identifier: Apache-2.0
// A library that is loaded when its codec is first used, so that the engine loads without it. It
// stays open until the process ends; any thread may use it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "headrace/base/error.h"

namespace headrace {

// The folder of the libraries that a wheel contains, lib/ next to the engine; an empty path if that
// is unknown. nullopt in builds that are not a wheel (cmake/standalone.cmake).
std::optional<std::filesystem::path> bundled_libraries();

class RunTimeLibrary {
 public:
  // `file`: the soname for the dynamic loader ("libwebp.so.7", the version whose headers this build
  // includes). `package`: the Debian package that contains it. With a `wheel`, only
  // libheadrace-webp.so.7 in that folder is loaded; without it, only the library of the system.
  RunTimeLibrary(const std::string& file, std::string package,
                 const std::optional<std::filesystem::path>& wheel = bundled_libraries());
  RunTimeLibrary(const RunTimeLibrary&) = delete;
  RunTimeLibrary& operator=(const RunTimeLibrary&) = delete;

  // Sets `function` to the library's symbol of this name; a missing one is recorded as a problem.
  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(symbol(name));
  }
  // Marks the library as unusable, for example because its version differs from the headers'.
  void refuse(std::string why) { problem_ = std::move(why); }

  bool is_open() const { return problem_.empty(); }
  const std::string& package() const { return package_; }
  // HR0344: what is missing and which package has it. REQUIRES: !is_open()
  Error missing() const;
  // The library in use: "libwebp 1.6.0 (of the wheel)", or the path of the system's file, whose
  // name ends with its version. Empty if there is none.
  std::string origin() const;

 private:
  void* symbol(const char* name);

  std::string package_;
  bool in_wheel_ = false;
  void* handle_ = nullptr;
  std::string problem_;
};

}  // namespace headrace
