// SPDX-License-Identifier: Apache-2.0
// Parses a page of a bucket's listing into entries of one folder, with the checks common to all
// clouds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/storage/remote/cloud.h"

namespace headrace {

inline constexpr int kMaxListed = 1000;  // entries per page

// The prefix of the keys in a folder: "s3://bucket/a/b" -> "a/b/"; empty for a whole bucket.
std::string prefix_of(const std::string& folder);

// A key as the cloud lists it.
struct ListedKey {
  std::string key, etag;
  uint64_t size = 0;
  bool is_folder = false;
};

// Converts keys to entries of the folder with this prefix (including its final "/"), without the
// key of the folder itself. HR0224 if a key does not begin with the prefix, or is in a subfolder
// although the listing is not flat; HR0227 if one is not a valid path, because a part after the
// prefix is empty, "." or "..".
Result<ListPage> page_of_keys(std::vector<ListedKey> keys, std::string_view prefix, bool flat,
                              std::string next);

// ListObjectsV2 of S3, and Google's equivalent: the query and the answer.
std::string list_query_of_xml(const ListQuery& query);
Result<ListPage> list_page_of_xml(std::string_view body, std::string_view prefix, bool flat);
// Azure's List Blobs.
Result<ListPage> list_page_of_azure(std::string_view body, std::string_view prefix, bool flat);
// The tree of a repository of the Hugging Face Hub. `next_page`: the address of the next page, from
// the head of the response.
Result<ListPage> list_page_of_hub(std::string_view body, std::string_view next_page,
                                  std::string_view prefix, bool flat);

// HR0224: a listing is not what was requested, or is truncated.
Error bad_listing(std::string what);

}  // namespace headrace
