// SPDX-License-Identifier: Apache-2.0
// How much disk space the block cache may use.
#pragma once

#include <cstdint>

namespace headrace {

struct BlockCacheOptions {
  uint64_t limit = 0;  // bytes on disk
  uint64_t block_bytes = uint64_t{8} << 20;
};

// The limit. Throws Exception HR0298 if it is smaller than a few blocks.
uint64_t checked_limit(const BlockCacheOptions& options);

// HEADRACE_DISK_CACHE; 0 if it is not set, or "0". Throws Exception HR0298 if it is not a number.
uint64_t limit_from_environment();

}  // namespace headrace
