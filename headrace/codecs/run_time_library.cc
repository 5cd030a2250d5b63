// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/run_time_library.h"

#include <dlfcn.h>

namespace headrace {
namespace {

const ErrorCode kNoLibrary{
    "HR0344", ErrorKind::kConfig, "library of a codec is missing",
    "This kind of picture or sound is decoded by a library that is opened when the first one is met, "
    "and it is not there, or of another version than Headrace was built for. Install the package "
    "that the message names (apt-get install on Debian and Ubuntu), or convert the pictures to JPEG "
    "or PNG, the sounds to WAV. "
    "`headrace formats NAME` tells what a codec needs and whether it is there."};

}  // namespace

RunTimeLibrary::RunTimeLibrary(const char* file, const char* package) : package_(package) {
  handle_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle_) return;
  const char* why = dlerror();
  problem_ = why ? why : file;
}

void* RunTimeLibrary::symbol(const char* name) {
  if (!handle_) return nullptr;
  void* const found = dlsym(handle_, name);
  if (!found) problem_ = std::string("it has no function ") + name;
  return found;
}

Error RunTimeLibrary::missing() const {
  return {.code = &kNoLibrary,
          .what = "the library that decodes it could not be opened: " + problem_,
          .hint = std::string("apt-get install ") + package_ +
                  ", or convert such files (pictures to JPEG or PNG, sounds to WAV)"};
}

}  // namespace headrace
