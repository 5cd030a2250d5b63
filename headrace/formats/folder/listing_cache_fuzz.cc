// SPDX-License-Identifier: Apache-2.0
// A cached listing as hostile input. The checksum is corrected first, so that the fuzzer gets past
// it.
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "headrace/formats/folder/listing_cache.h"
#include "headrace/sources/fingerprint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  // Version, rules and root of a real entry, followed by the fuzzer's bytes.
  constexpr size_t kHeader = 24 + 8 + 8 + 2;
  static const std::vector<uint8_t> start = [] {
    FolderListing root_only;
    root_only.paths.add("");
    root_only.folders.resize(1);
    return bytes_from_listing(root_only, "/r");
  }();
  std::vector<uint8_t> bytes(start.begin(), start.begin() + kHeader);
  bytes.insert(bytes.end(), data, data + size);
  Fingerprint sum;
  sum.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).substr(24));
  const uint64_t value = sum.value();
  std::memcpy(bytes.data() + 16, &value, sizeof value);
  if (const auto listing = listing_from_bytes(bytes, "/r")) {
    if (bytes_from_listing(*listing, "/r") != bytes) std::abort();
  }
  return 0;
}
