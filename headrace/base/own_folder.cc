// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/own_folder.h"

#include <dlfcn.h>

#include <system_error>

namespace headrace {

std::filesystem::path own_folder() {
  Dl_info own{};
  if (!dladdr(reinterpret_cast<const void*>(&own_folder), &own) || !own.dli_fname) return {};
  std::error_code ignored;
  return std::filesystem::absolute(own.dli_fname, ignored).parent_path();
}

}  // namespace headrace
