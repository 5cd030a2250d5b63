// SPDX-License-Identifier: Apache-2.0
// AWS Signature Version 4, for S3 and compatible stores, and Google's signatures with HMAC keys,
// which differ only in names.
//
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
// https://cloud.google.com/storage/docs/authentication/signatures
//
// Range and If-Match are not signed, which is allowed. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/storage/remote/sha256.h"
#include "headrace/storage/remote/url.h"

namespace headrace {

// Credentials that a cloud accepts, one of:
struct SigningKeys {
  std::string key = {}, secret = {};  // sign each request
  std::string token = {};             // session token of the key; without a key: a bearer token
  std::string query = {};             // a signature in each URL's query (Azure's SAS)
  bool operator==(const SigningKeys&) const = default;
};

struct SigningDialect {
  std::string_view name, header_prefix, service, end;
};
inline constexpr SigningDialect kAwsSigning{"AWS4", "x-amz-", "s3", "aws4_request"};
inline constexpr SigningDialect kGoogleSigning{"GOOG4", "x-goog-", "storage", "goog4_request"};

// The signed parts of a request, except its URL.
struct SignedParts {
  std::string_view method = "GET";
  std::string_view body = {};
  // Additional headers to send and sign, names in lower case.
  std::vector<std::pair<std::string, std::string>> headers = {};
};

class Signer {
 public:
  explicit Signer(const SigningDialect& dialect = kAwsSigning) : dialect_(dialect) {}

  // Headers that authorize the request at `time` (seconds since 1970), including those of `parts`.
  // REQUIRES: path and query are escaped by escaped().
  std::vector<std::string> headers(const Url& url, const SigningKeys& keys,
                                   const std::string& region, int64_t time,
                                   const SignedParts& parts = {}) EXCLUDES_LOCK(mutex_);

 private:
  // The signing key of a day and region, which takes four HMACs, with its cached hash states.
  struct Derived {
    std::string secret, day, region;
    HmacSha256 key;
  };
  HmacSha256 derived(const std::string& secret, std::string_view day, const std::string& region)
      EXCLUDES_LOCK(mutex_);

  const SigningDialect dialect_;
  Mutex mutex_;
  std::vector<Derived> kept_ GUARDED_BY(mutex_);
};

// "b=2&a=1&c" -> "a=1&b=2&c=": the form that is signed.
std::string canonical_query(std::string_view query);

}  // namespace headrace
