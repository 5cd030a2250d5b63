// SPDX-License-Identifier: Apache-2.0
// Addresses as text: their parts, their escapes, and the part that may be shown.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headrace {

struct Url {
  std::string scheme;  // lower case
  std::string user;    // "name:password", as it is written; mostly empty
  std::string host;    // lower case, with its port: "127.0.0.1:9000"
  std::string path;    // escaped, from its "/" on; "/" where there is none
  std::string query;   // escaped, without its "?"

  std::string text() const;  // without the user
};

// Parses "scheme://host/path?query"; empty without a host, or with control characters in it.
// Invalid characters are escaped, and escapes stay; a fragment is left out.
std::optional<Url> parse_url(std::string_view text);

// Everything but letters, digits and "-._~" as %XX, with upper-case digits, as signatures want it.
std::string escaped(std::string_view text, std::string_view keep = {});
// "%41+b" -> "A+b"; with `plus_is_blank`, "A b". What is not two digits after a % stays.
std::string unescaped(std::string_view text, bool plus_is_blank = false);

// Where an address redirects to: `location` may be relative.
std::optional<Url> resolved(const Url& base, std::string_view location);

// "s3://bucket/a/b" -> "bucket", "a/b".
struct BucketAndKey {
  std::string bucket, key;
};
BucketAndKey bucket_and_key(std::string_view path);

}  // namespace headrace
