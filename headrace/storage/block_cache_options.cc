// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <optional>
#include <string>

#include "headrace/base/error.h"
#include "headrace/base/number_text.h"
#include "headrace/storage/block_cache.h"

namespace headrace {
namespace {

const ErrorCode kInvalidLimit{
    "HR0298", ErrorKind::kConfig, "invalid disk cache limit",
    "disk_cache= and HEADRACE_DISK_CACHE set how many bytes of local disk, in HEADRACE_CACHE, "
    "cached blocks of remote files may use: \"200GB\", \"1.5TiB\" or a number. A block is 8 MiB; "
    "at least four are needed, so that there is a choice when one is evicted."};

constexpr uint64_t kMinBlocks = 4;

}  // namespace

uint64_t checked_limit(const BlockCacheOptions& options) {
  const uint64_t least = kMinBlocks * options.block_bytes;
  if (options.limit >= least) return options.limit;
  raise(kInvalidLimit,
        "a disk cache of " + std::to_string(options.limit) + " bytes is too small; at least " +
            std::to_string(least) + " (" + std::to_string(kMinBlocks) + " blocks) are needed",
        "use disk_cache=" + std::to_string(least) + " or more, or none");
}

uint64_t limit_from_environment() {
  const char* text = std::getenv("HEADRACE_DISK_CACHE");
  if (!text || !*text) return 0;
  const std::optional<uint64_t> limit = byte_size_of_text(text);
  if (limit) return *limit;
  raise(kInvalidLimit, "HEADRACE_DISK_CACHE is \"" + std::string(text) + "\"",
        "HEADRACE_DISK_CACHE=200GB");
}

}  // namespace headrace
