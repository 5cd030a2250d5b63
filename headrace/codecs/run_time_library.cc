// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/run_time_library.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "headrace/base/library_folder.h"

namespace headrace {
namespace {

const ErrorCode kNoLibrary{
    "HR0344", ErrorKind::kConfig, "codec library missing",
    "This type of image or audio is decoded by a library that is loaded on first use, and it is "
    "missing, or a different version than Headrace was built for. Install the package named in the "
    "message (apt-get install on Debian and Ubuntu), or convert images to JPEG or PNG, audio to "
    "WAV. `headrace formats NAME` shows what a codec needs and whether it is available."};

// The file in a wheel. Its name differs from that of the system's library, so that loaders of other
// packages do not mistake one for the other.
std::string in_wheel(const std::filesystem::path& folder, const std::string& file) {
  constexpr std::string_view kPrefix = "lib";
  return (folder / ("libheadrace-" + file.substr(kPrefix.size()))).string();
}

}  // namespace

std::optional<std::filesystem::path> bundled_libraries() {
#if defined(HEADRACE_CODECS_WHEEL)
  return library_folder().empty() ? std::filesystem::path() : library_folder() / "lib";
#else
  return std::nullopt;
#endif
}

RunTimeLibrary::RunTimeLibrary(const std::string& file, std::string package,
                               const std::optional<std::filesystem::path>& wheel)
    : package_(std::move(package)), in_wheel_(wheel.has_value()) {
  if (in_wheel_ && wheel->empty()) {
    problem_ = "the folder of the engine is unknown";
    return;
  }
  const std::string path = in_wheel_ ? in_wheel(*wheel, file) : file;
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
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
          .hint = (in_wheel_ ? "pip install --force-reinstall headrace"
                             : "apt-get install " + package_) +
                  ", or convert such files (images to JPEG or PNG, audio clips to WAV)"};
}

std::string RunTimeLibrary::origin() const {
  link_map* map = nullptr;
  if (!handle_ || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return {};
  // Defined by tools/wheels/link_codecs.py.
  if (const void* const name = dlsym(handle_, "headrace_library_name")) {
    return std::string(static_cast<const char*>(name)) + " (of the wheel)";
  }
  std::error_code ignored;
  return std::filesystem::weakly_canonical(map->l_name, ignored).string();
}

}  // namespace headrace
