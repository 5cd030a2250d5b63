// SPDX-License-Identifier: Apache-2.0
// Listings kept between runs. One holds as long as every listed folder has the same inode, time of
// modification and time of change (ctime). The file is parsed as hostile input: whatever it holds,
// the result is a listing that could be true, or none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/formats/folder/folder_listing.h"
#include "headrace/storage/cache_directory.h"

namespace headrace {

// The kept listing of a root, if it is still true. `root` is an absolute path without links.
std::optional<FolderListing> kept_listing(const CacheDirectory& cache, const std::string& root);

// Keeps a listing that was made at `listed_ns` (nanoseconds since 1970, when listing began).
// False when it was not possible, or not safe: see Note [What changed just now].
bool keep_listing(const CacheDirectory& cache, const std::string& root,
                  const FolderListing& listing, int64_t listed_ns);

// Whether every folder still has the inode and the times that the listing says.
bool is_current(const FolderListing& listing, const std::string& root);

std::string listing_cache_name(const std::string& root);
std::vector<uint8_t> bytes_from_listing(const FolderListing& listing, const std::string& root);
std::optional<FolderListing> listing_from_bytes(std::span<const uint8_t> bytes,
                                                const std::string& root);

}  // namespace headrace
