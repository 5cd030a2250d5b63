// SPDX-License-Identifier: Apache-2.0
// Listings of buckets as a server may answer them: whatever the bytes, names stay in their folder.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "headrace/storage/remote/object_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const std::string_view prefix : {"", "train/"}) {
    const auto page = headrace::list_page_of_xml(body, prefix);
    if (!page) continue;
    for (const headrace::RemoteEntry& entry : page->entries) {
      if (entry.name.empty() || entry.name == ".." || entry.name.find('/') != std::string::npos) {
        std::abort();
      }
    }
  }
  return 0;
}
