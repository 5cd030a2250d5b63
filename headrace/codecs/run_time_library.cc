// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/run_time_library.h"

#include <dlfcn.h>

#include "headrace/base/own_folder.h"

namespace headrace {
namespace {

const ErrorCode kNoLibrary{
    "HR0344", ErrorKind::kConfig, "codec library missing",
    "This type of image or audio is decoded by a library that is loaded on first use, and it is "
    "missing, or of another version than Headrace was built for. Install the package named in the "
    "message (apt-get install on Debian and Ubuntu), or convert images to JPEG or PNG, audio to "
    "WAV. `headrace formats NAME` shows what a codec needs and whether it is available."};

}  // namespace

RunTimeLibrary::RunTimeLibrary(const char* file, const char* package) : package_(package) {
  const std::string carried = (own_folder() / "lib" / file).string();
  handle_ = dlopen(carried.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) handle_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
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
                  ", or convert such files (images to JPEG or PNG, audio clips to WAV)"};
}

}  // namespace headrace
