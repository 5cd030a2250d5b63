// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string_view>
#include <system_error>

#include "headrace/base/library_folder.h"
#include "headrace/codecs/media/media_process.h"

// For builds without the program.
#if !defined(HEADRACE_AV_PACKAGE)
#define HEADRACE_AV_PACKAGE "libavcodec-dev"
#endif
// The wheel that contains it, if Headrace is built as a wheel (cmake/standalone.cmake); else empty.
#if !defined(HEADRACE_AV_WHEEL)
#define HEADRACE_AV_WHEEL ""
#endif

namespace headrace {
namespace {

constexpr std::string_view kProgram = "headrace-av", kWheel = HEADRACE_AV_WHEEL;

}  // namespace

std::string media_program() {
  if (library_folder().empty()) return {};  // the folder of the engine is unknown
  const std::filesystem::path ours = library_folder() / kProgram;
  const std::filesystem::path wheels = library_folder().parent_path() / "headrace_media" / kProgram;
  std::error_code ignored;
  const bool in_wheel = !kWheel.empty() && !std::filesystem::exists(ours, ignored);
  return (in_wheel ? wheels : ours).string();
}

std::string media_package() { return kWheel.empty() ? HEADRACE_AV_PACKAGE : std::string(kWheel); }

std::string media_install() {
  return (kWheel.empty() ? "apt-get install " : "pip install ") + media_package();
}

std::string media_absence() {
  return kWheel.empty() ? "libavcodec's headers were missing when Headrace was built"
                        : "the package " + std::string(kWheel) + " is not installed";
}

std::string media_absence_hint() {
  return kWheel.empty() ? "apt-get install libavcodec-dev, then install Headrace again"
                        : media_install() + " where headrace is installed";
}

}  // namespace headrace
