// SPDX-License-Identifier: Apache-2.0
// Listings cached between runs. A listing is valid as long as every listed folder has the same
// inode, modification time and change time (ctime). The file is parsed as hostile input: the result
// is either a plausible listing or empty.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/formats/folder/folder_listing.h"
#include "headrace/storage/cache_directory.h"

namespace headrace {

// The cached listing of a root, if it is still valid. `root` is an absolute path without links.
std::optional<FolderListing> cached_listing(const CacheDirectory& cache, const std::string& root);

// Caches a listing made at `listed_ns` (nanoseconds since 1970, when listing began). False if that
// is not possible or not safe: see Note [What changed just now].
bool cache_listing(const CacheDirectory& cache, const std::string& root,
                   const FolderListing& listing, int64_t listed_ns);

// Whether every folder still has the inode and the times in the listing.
bool is_current(const FolderListing& listing, const std::string& root);

std::string listing_cache_name(const std::string& root);
std::vector<uint8_t> bytes_from_listing(const FolderListing& listing, const std::string& root);
std::optional<FolderListing> listing_from_bytes(std::span<const uint8_t> bytes,
                                                const std::string& root);

}  // namespace headrace
