// SPDX-License-Identifier: Apache-2.0
// Arbitrary listings of any cloud: regardless of the bytes, names stay in their folder. The first
// byte selects the cloud, and whether the listing is flat.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "headrace/storage/remote/object_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool flat = (data[0] & 4) != 0;
  for (const std::string_view prefix : {"", "train/"}) {
    const auto page = (data[0] & 3) == 0   ? headrace::list_page_of_xml(body, prefix, flat)
                      : (data[0] & 3) == 1 ? headrace::list_page_of_azure(body, prefix, flat)
                                           : headrace::list_page_of_hub(body, "", prefix, flat);
    if (!page) continue;
    for (const headrace::RemoteEntry& entry : page->entries) {
      const std::string name = "/" + entry.name + "/";
      if (name.find("//") != std::string::npos || name.find("/../") != std::string::npos ||
          name.find("/./") != std::string::npos || (!flat && name.find('/', 1) + 1 != name.size()))
        std::abort();
    }
  }
  return 0;
}
