// SPDX-License-Identifier: Apache-2.0
// A compressed file (gzip, zlib, Zstandard) as a decompressed one in the user's cache folder, so
// that it can be read by position.
//
// It is unpacked once, in constant memory, and used again as long as neither the file nor the
// copy changes. Processes that want the same copy wait for the first; one that is killed leaves
// nothing but an empty file. Whatever lies in the folder is a container to be parsed like any
// other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "headrace/base/error.h"
#include "headrace/storage/cache_directory.h"
#include "headrace/storage/unpacker.h"

namespace headrace {

struct UnpackLimits {
  uint64_t max_bytes = uint64_t{16} << 40;
  // Ratio of decompressed to compressed bytes, beyond the first GiB. Deflate can reach 1032 and
  // Zstandard far more; real data never does.
  uint64_t max_ratio = 256;
  uint64_t always = uint64_t{1} << 30;
  // Bytes to leave free on the cache folder's disk.
  uint64_t leave_free = uint64_t{256} << 20;
};

struct UnpackedCopy {
  std::string path;
  // Why the copy ends before the file does: HR0211 or HR0213, with the offset in the compressed
  // file.
  std::optional<Error> damage = {};
};

// `passed` is called occasionally with the number of compressed bytes done; an exception from it
// ends the work. Errors: HR0201..HR0205 of the file; HR0209 no cache folder; HR0210 the copy cannot
// be written, or the disk is full; HR0212 it would be too large. REQUIRES: packing is not kNone.
Result<UnpackedCopy> unpacked_copy(const std::string& path, Packing packing,
                                   const CacheDirectory& cache,
                                   const std::function<void(uint64_t)>& passed = {},
                                   const UnpackLimits& limits = {});

}  // namespace headrace
