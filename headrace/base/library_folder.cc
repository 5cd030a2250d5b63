// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/library_folder.h"

#include <dlfcn.h>

#include <string_view>
#include <system_error>

namespace headrace {

std::filesystem::path folder_of_loaded_file(const char* file) {
  if (!file || std::string_view(file).find('/') == std::string_view::npos) return {};
  std::error_code ignored;
  return std::filesystem::absolute(file, ignored).parent_path();
}

const std::filesystem::path& library_folder() {
  static const std::filesystem::path folder = [] {
    Dl_info own{};
    const bool found = dladdr(reinterpret_cast<const void*>(&library_folder), &own) != 0;
    return folder_of_loaded_file(found ? own.dli_fname : nullptr);
  }();
  return folder;
}

}  // namespace headrace
