// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/media_program.h"

#include <dlfcn.h>

#include <filesystem>

// In builds without it, which have no program either.
#if !defined(HEADRACE_AV_PACKAGE)
#define HEADRACE_AV_PACKAGE "libavcodec-dev"
#endif

namespace headrace {

std::string media_program() {
  Dl_info library{};
  if (!dladdr(reinterpret_cast<const void*>(&media_program), &library) || !library.dli_fname) {
    return "headrace-av";
  }
  std::error_code ignored;
  const std::filesystem::path file = std::filesystem::absolute(library.dli_fname, ignored);
  return (file.parent_path() / "headrace-av").string();
}

const char* media_package() { return HEADRACE_AV_PACKAGE; }

}  // namespace headrace
