// SPDX-License-Identifier: Apache-2.0
// Which unpacked copies have to go when another one needs the room: those that were opened longest
// ago, none that any process uses, and nothing that is not provably a copy of ours.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/storage/copies_in_use.h"

namespace headrace {

// What unpacked copies may take together: HEADRACE_CACHE_LIMIT ("200 GB", "64 GiB", bytes). Not set
// or empty: nothing. Errors: HR0279 it is no size.
Result<std::optional<uint64_t>> cache_limit();
// As messages have it: "1234 bytes", "56.7 GB".
std::string bytes_text(uint64_t bytes);

struct KeptCopy {
  std::string name;
  uint64_t bytes = 0;
  int64_t opened_ns = 0;  // last
};
// Those in the folder, the one that was opened longest ago first.
std::vector<KeptCopy> kept_copies(const CacheDirectory& cache);
// Says that a copy is opened now. Where the folder is somebody else's it may do nothing.
void note_opened(const CacheDirectory& cache, const std::string& name);

// Deletes unused copies until so many bytes are freed, or there are no more.
CopiesInUse::Deleted delete_unused_copies(const CacheDirectory& cache, uint64_t bytes);

}  // namespace headrace
