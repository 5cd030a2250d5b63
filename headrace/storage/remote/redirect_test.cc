// SPDX-License-Identifier: Apache-2.0
// Promise: a redirect never leads a request away from TLS or to a server that the user did not
// name, and credentials never leave the server that they are for.
#include <gtest/gtest.h>

#include <string>

#include "headrace/storage/remote/range_client.h"

namespace headrace {
namespace {

HttpRequest request_of(const std::string& url, bool any_host = false) {
  return {.url = url,
          .user = "me:secret",
          .headers = {"Authorization: secret"},
          .version = "v1",
          .any_host = any_host};
}

// The address, or why there is none.
std::string leads(const HttpRequest& from, const std::string& location, bool any = false) {
  const Result<HttpRequest> to = redirected(from, location, any);
  return to ? to->url : to.error().what;
}

TEST(Redirect, IsFollowedOnTheSameServer) {
  const HttpRequest from = request_of("https://a.org/data/x");
  EXPECT_EQ(leads(from, "/other?key=1"), "https://a.org/other?key=1");
  EXPECT_EQ(leads(from, "https://a.org/other"), "https://a.org/other");
  EXPECT_EQ(leads(request_of("http://a.org:80/x"), "https://a.org/x"), "https://a.org/x");
}

TEST(Redirect, IsRefusedToAnotherServer) {
  const HttpRequest from = request_of("https://a.org/x");
  EXPECT_EQ(leads(from, "https://b.org/x"), "to another server, https://b.org");
  EXPECT_EQ(leads(from, "https://a.org:444/x"), "to another server, https://a.org:444");
  EXPECT_EQ(leads(from, "http://a.org/x"), "to a server without TLS, http://a.org");
  EXPECT_EQ(leads(from, "ftp://a.org/x"), "to ftp://");
  EXPECT_EQ(leads(from, "file:///etc/passwd", /*any=*/true).substr(0, 3), "to ");
  EXPECT_EQ(leads(from, ""), "to an invalid address");
}

TEST(Redirect, IsFollowedToAnotherServerIfAllowed) {
  EXPECT_EQ(leads(request_of("https://a.org/x"), "http://b.org/y", /*any=*/true), "http://b.org/y");
  const HttpRequest hub = request_of("https://a.org/x", /*any_host=*/true);
  EXPECT_EQ(leads(hub, "https://cdn.org/y"), "https://cdn.org/y");
  EXPECT_EQ(leads(hub, "http://cdn.org/y"), "to a server without TLS, http://cdn.org");
}

TEST(Redirect, KeepsCredentialsOnTheSameServerOnly) {
  const HttpRequest same = redirected(request_of("https://a.org/x"), "/y", false).value();
  EXPECT_EQ(same.user, "me:secret");
  EXPECT_EQ(same.headers.size(), size_t{1});
  const HttpRequest other =
      redirected(request_of("https://a.org/x"), "https://b.org/y", true).value();
  EXPECT_EQ(other.user, "");
  EXPECT_TRUE(other.headers.empty());
  EXPECT_EQ(other.version, "v1");  // of the object, whoever delivers it
}

}  // namespace
}  // namespace headrace
