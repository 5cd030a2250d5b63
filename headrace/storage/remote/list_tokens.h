// SPDX-License-Identifier: Apache-2.0
// The continuation tokens of a listing, as hashes: a server that repeats a token would send the
// pages after it forever. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

#include "headrace/base/error.h"
#include "headrace/base/random.h"
#include "headrace/storage/remote/cloud.h"
#include "headrace/storage/remote/range_client.h"

namespace headrace {

class ListTokens {
 public:
  // The token at the end of a page; empty: it is the last one. HR0221 if an earlier page of the
  // same listing had it too.
  Result<void> add(const ListQuery& query, const std::string& next) {
    if (next.empty()) return {};
    const uint64_t listing = mix64(hash_name(query.folder), hash_name(query.after));
    if (hashes_.insert(mix64(listing + (query.flat ? 1 : 0), hash_name(next))).second) return {};
    return request_error(query.folder, "the listing repeats itself");
  }

 private:
  std::unordered_set<uint64_t> hashes_;
};

}  // namespace headrace
