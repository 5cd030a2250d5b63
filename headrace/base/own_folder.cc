// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/own_folder.h"

#include <dlfcn.h>

#include <string_view>
#include <system_error>

namespace headrace {

std::filesystem::path folder_of_loaded(const char* file) {
  if (!file || std::string_view(file).find('/') == std::string_view::npos) return {};
  std::error_code ignored;
  return std::filesystem::absolute(file, ignored).parent_path();
}

const std::filesystem::path& own_folder() {
  static const std::filesystem::path folder = [] {
    Dl_info own{};
    const bool found = dladdr(reinterpret_cast<const void*>(&own_folder), &own) != 0;
    return folder_of_loaded(found ? own.dli_fname : nullptr);
  }();
  return folder;
}

}  // namespace headrace
