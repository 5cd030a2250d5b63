// SPDX-License-Identifier: Apache-2.0
// Signatures of AWS, version 4, of requests without a body: S3 and all that is compatible.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
//
// Range and If-Match are not signed: they may change from try to try. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/storage/remote/sha256.h"
#include "headrace/storage/remote/url.h"

namespace headrace {

struct SigningKeys {
  std::string key, secret;
  std::string token = {};  // of a session; empty for keys that stay
  bool operator==(const SigningKeys&) const = default;
};

class Signer {
 public:
  // Headers that authorize `GET url` at that time (seconds since 1970). REQUIRES: path and query
  // are escaped as escaped() does it.
  std::vector<std::string> headers(const Url& url, const SigningKeys& keys,
                                   const std::string& region, int64_t time,
                                   std::string_view service = "s3") EXCLUDES_LOCK(mutex_);

 private:
  // What a day's key was derived from: four hashes that are the same for all requests of the day.
  struct Derived {
    std::string secret, day, region, service;
    Sha256 key;
  };
  Sha256 derived(const std::string& secret, const std::string& day, const std::string& region,
                 std::string_view service) EXCLUDES_LOCK(mutex_);

  Mutex mutex_;
  std::vector<Derived> kept_ GUARDED_BY(mutex_);
};

// "b=2&a=1&c" -> "a=1&b=2&c=": as it is signed.
std::string canonical_query(std::string_view query);

}  // namespace headrace
