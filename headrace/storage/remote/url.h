// SPDX-License-Identifier: Apache-2.0
// URLs: parsing, percent-encoding, and the text that may be displayed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headrace {

struct Url {
  std::string scheme;  // lower case
  std::string user;    // "name:password", as written; usually empty
  std::string host;    // lower case, with its port: "127.0.0.1:9000"
  std::string path;    // escaped, including the leading "/"; never empty
  std::string query;   // escaped, without its "?"

  std::string text() const;  // without the user
};

// Parses "scheme://host/path?query"; empty without a host, or with control characters in it.
// Invalid characters are escaped, existing escapes are kept, and the fragment is dropped.
std::optional<Url> parse_url(std::string_view text);

// Percent-encodes everything but letters, digits, "-._~" and the characters in `keep`, with
// upper-case hex digits, as signatures require.
std::string escaped(std::string_view text, std::string_view keep = {});
// "%41+b" -> "A+b"; with `plus_is_blank`, "A b". A % without two hex digits after it is kept.
std::string unescaped(std::string_view text, bool plus_is_blank = false);

// The target of a redirect from `base`: `location` may be relative.
std::optional<Url> resolved(const Url& base, std::string_view location);

// "s3://bucket/a/b" -> "bucket", "a/b".
struct BucketAndKey {
  std::string bucket, key;
};
BucketAndKey bucket_and_key(std::string_view path);

}  // namespace headrace
