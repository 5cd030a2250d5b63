// SPDX-License-Identifier: Apache-2.0
// Decompresses a file (gzip, zlib, Zstandard) into the user's cache folder, for random access.
//
// The file is decompressed once, in constant memory, and the copy is reused until the file or the
// copy changes. Processes that need the same copy wait for the first process; a process that is
// killed leaves only an empty file. The copies are not trusted: they are parsed like any other
// container.
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
  // Bytes that must stay free on the disk of the cache folder.
  uint64_t leave_free = uint64_t{256} << 20;
};

struct UnpackedCopy {
  std::string path;
  // Why decompression stopped before the end of the file: HR0211 or HR0213, with the offset in the
  // compressed file.
  std::optional<Error> damage = {};
};

// `passed` is called occasionally with the number of compressed bytes done; an exception from it
// ends the work. Errors: HR0201..HR0205 of the file; HR0209 no cache folder; HR0210 the copy cannot
// be written, or the disk is full; HR0212 the copy would be too large. REQUIRES: packing is not
// kNone.
Result<UnpackedCopy> unpacked_copy(const std::string& path, Packing packing,
                                   const CacheDirectory& cache,
                                   const std::function<void(uint64_t)>& passed = {},
                                   const UnpackLimits& limits = {});

}  // namespace headrace
