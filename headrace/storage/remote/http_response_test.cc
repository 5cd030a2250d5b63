// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/http_response.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace headrace {
namespace {

HttpResponse response_of(std::initializer_list<const char*> lines) {
  HttpResponse out;
  for (const char* line : lines) out.take_line(std::string(line) + "\r\n");
  return out;
}

Verdict verdict_of(std::initializer_list<const char*> lines, WantedRange wanted) {
  return judge(response_of(lines), wanted).verdict;
}

constexpr WantedRange kPart{.first = 100, .bytes = 50};

TEST(HttpResponse, AMatchingRangeIsAccepted) {
  const char* range = "content-range:  bytes 100-149/1000 ";
  const Judgment judged = judge(response_of({"HTTP/1.1 206 Partial Content", range}), kPart);
  EXPECT_EQ(judged.verdict, Verdict::kTake);
  EXPECT_EQ(judged.total, 1000U);
  EXPECT_EQ(judged.body, 50U);
  EXPECT_EQ(verdict_of({"HTTP/1.1 200 OK", range}, kPart), Verdict::kTake);  // rclone says so
  EXPECT_EQ(verdict_of({"HTTP/1.1 206", "Content-Range: bytes 100-119/120"}, kPart),
            Verdict::kTake);  // where the object ends
  EXPECT_EQ(verdict_of({"HTTP/1.1 103", "HTTP/1.1 206", range}, kPart), Verdict::kTake);
}

TEST(HttpResponse, ABodyOfTheWrongSizeIsNotAccepted) {
  for (const char* range :
       {"bytes 100-148/1000", "bytes 101-150/1000", "bytes 0-49/1000", "bytes 149-100/1000",
        "bytes 100-149/149", "bytes 100-18446744073709551615/1000", "bytes */1000", "bytes", "",
        "items 100-149/1000", "bytes 100-149/x", "bytes -1-149/1000", "bytes 100-149/*"}) {
    const std::string line = std::string("Content-Range: ") + range;
    EXPECT_EQ(verdict_of({"HTTP/1.1 206", line.c_str()}, kPart), Verdict::kWrong) << range;
  }
  EXPECT_EQ(verdict_of({"HTTP/1.1 206", "Content-Range: bytes 100-149/1000", "Content-Length: 60"},
                       kPart),
            Verdict::kWrong);
  EXPECT_EQ(
      verdict_of({"HTTP/1.1 206", "Content-Range: bytes 100-149/1000", "Content-Encoding: gzip"},
                 kPart),
      Verdict::kWrong);
}

TEST(HttpResponse, AServerWithoutRangesIsDetected) {
  EXPECT_EQ(verdict_of({"HTTP/1.1 200 OK", "Content-Length: 1000"}, kPart), Verdict::kNoRange);
  EXPECT_EQ(verdict_of({"HTTP/1.1 200 OK", "Content-Length: 40"}, {.first = 0, .bytes = 50}),
            Verdict::kTake);
  EXPECT_EQ(verdict_of({"HTTP/1.1 200 OK", "Content-Length: 1000"}, {}), Verdict::kTake);
}

TEST(HttpResponse, OtherStatusesAreDistinguished) {
  EXPECT_EQ(verdict_of({"HTTP/1.1 404"}, kPart), Verdict::kNothing);
  EXPECT_EQ(verdict_of({"HTTP/1.1 412"}, kPart), Verdict::kChanged);
  EXPECT_EQ(judge(response_of({"HTTP/1.1 416", "Content-Range: bytes */7"}), kPart).total, 7U);
  EXPECT_EQ(verdict_of({"HTTP/1.1 403"}, kPart), Verdict::kRenew);
  EXPECT_EQ(verdict_of({"HTTP/1.1 302", "Location: /b"}, kPart), Verdict::kRedirect);
  EXPECT_EQ(verdict_of({"HTTP/1.1 503"}, kPart), Verdict::kThrottled);
  EXPECT_EQ(verdict_of({"HTTP/1.1 500"}, kPart), Verdict::kAgain);
  EXPECT_EQ(verdict_of({"HTTP/1.1 204"}, kPart), Verdict::kRefused);
  EXPECT_EQ(verdict_of({"nonsense"}, kPart), Verdict::kRefused);
}

TEST(HttpResponse, AVersionIsTheETagOrTheModificationTime) {
  EXPECT_EQ(response_of({"HTTP/1.1 200", "ETag: W/\"a\"", "Last-Modified: x"}).version(), "a");
  EXPECT_EQ(response_of({"HTTP/1.1 200", "Last-Modified: x"}).version(), "x");
}

TEST(Judge, TakesTheLastBytesOfAnObjectOfAnySize) {
  const WantedRange last{.bytes = 100, .from_end = true};
  EXPECT_EQ(last.value(), "bytes=-100");
  const auto verdict = [&](std::string_view range) {
    HttpResponse response;
    response.take_line("HTTP/1.1 206 Partial Content");
    response.take_line("Content-Range: bytes " + std::string(range));
    return judge(response, last).verdict;
  };
  EXPECT_EQ(verdict("900-999/1000"), Verdict::kTake);
  EXPECT_EQ(verdict("0-49/50"), Verdict::kTake) << "it has fewer";
  EXPECT_EQ(verdict("0-99/1000"), Verdict::kWrong) << "its first bytes";
  EXPECT_EQ(verdict("901-999/1000"), Verdict::kWrong);
  EXPECT_EQ(verdict("800-999/1000"), Verdict::kWrong);
}

}  // namespace
}  // namespace headrace
