// SPDX-License-Identifier: Apache-2.0
// A library that is opened when its codec is first used, so that the engine loads without it. It
// stays open for the life of the process; any thread may use it.
#pragma once

#include <string>

#include "headrace/base/error.h"

namespace headrace {

class RunTimeLibrary {
 public:
  // `file` as the loader knows it ("libwebp.so.7": the version whose headers this build has read),
  // and Debian's package of it. The folder lib/ beside the engine comes first, then the system.
  RunTimeLibrary(const char* file, const char* package);
  RunTimeLibrary(const RunTimeLibrary&) = delete;
  RunTimeLibrary& operator=(const RunTimeLibrary&) = delete;

  // Sets `function` to what the library has of this name; one that is not there is a problem.
  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(symbol(name));
  }
  // The library is of another version than its headers.
  void refuse(std::string why) { problem_ = std::move(why); }

  bool is_open() const { return problem_.empty(); }
  const char* package() const { return package_; }
  // HR0344: what is missing and which package has it. REQUIRES: !is_open()
  Error missing() const;

 private:
  void* symbol(const char* name);

  const char* package_;
  void* handle_ = nullptr;
  std::string problem_;
};

}  // namespace headrace
