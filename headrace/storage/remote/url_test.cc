// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/url.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Url, IsParsedAndEscaped) {
  const auto url = parse_url("HTTPS://Me:p%40ss@Host.example:8443/a b/%41+\xc3\xa9?x=1&y=[2]#part");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->scheme, "https");
  EXPECT_EQ(url->user, "Me:p%40ss");
  EXPECT_EQ(url->host, "host.example:8443");
  EXPECT_EQ(url->path, "/a%20b/%41+%C3%A9");
  EXPECT_EQ(url->query, "x=1&y=%5B2%5D");
  EXPECT_EQ(url->text(), "https://host.example:8443/a%20b/%41+%C3%A9?x=1&y=%5B2%5D");
  EXPECT_EQ(parse_url("http://host")->path, "/");
  EXPECT_EQ(parse_url("http://host?q")->query, "q");
  EXPECT_EQ(parse_url("http://host/50%")->path, "/50%25");
}

TEST(Url, WithoutAHostOrWithLineBreaksIsInvalid) {
  for (const char* text : {"", "host/a", "://host", "http://", "http:///a", "http://a b/c",
                           "http://a\r\nHost: b/c", "http://@/"}) {
    EXPECT_FALSE(parse_url(text)) << text;
  }
  EXPECT_EQ(parse_url("http://a/b\r\nX: y")->path, "/b%0D%0AX:%20y");
}

TEST(Url, TextIsEscapedForSignatures) {
  EXPECT_EQ(escaped("a/b +=&~\xff"), "a%2Fb%20%2B%3D%26~%FF");
  EXPECT_EQ(escaped("a/b c", "/"), "a/b%20c");
  EXPECT_EQ(unescaped("a%2Fb+c%"), "a/b+c%");
  EXPECT_EQ(unescaped("a%2Bb+c", true), "a+b c");
}

TEST(Url, RedirectsMayBeRelative) {
  const Url base = *parse_url("https://host/a/b?q=1");
  EXPECT_EQ(resolved(base, "c?d")->text(), "https://host/a/c?d");
  EXPECT_EQ(resolved(base, "/c")->text(), "https://host/c");
  EXPECT_EQ(resolved(base, "//other/c")->text(), "https://other/c");
  EXPECT_EQ(resolved(base, "http://other/c?u=https://x")->text(), "http://other/c?u=https://x");
  EXPECT_FALSE(resolved(base, ""));
}

TEST(Url, BucketsAndKeysAreParsed) {
  const auto [bucket, key] = bucket_and_key("s3://bucket/a/b=c");
  EXPECT_EQ(bucket, "bucket");
  EXPECT_EQ(key, "a/b=c");
  EXPECT_EQ(bucket_and_key("s3://bucket").key, "");
}

}  // namespace
}  // namespace headrace
