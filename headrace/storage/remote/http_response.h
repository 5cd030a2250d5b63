// SPDX-License-Identifier: Apache-2.0
// Parses the headers of a response, and checks whether its body is what was requested. Servers are
// not trusted: all lengths are checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace {

struct HttpResponse {
  int status = 0;
  // Content-Range: "bytes 0-99/1000", "bytes */1000", "bytes 0-99/*".
  std::optional<uint64_t> range_first, range_last, range_total;
  bool has_range = false;  // the header was present and valid
  std::optional<uint64_t> length;
  std::string etag, modified, encoding, location, region;
  std::string linked_etag;  // X-Linked-ETag: version of the target of a Hugging Face Hub redirect
  std::string next_page;    // the address in `Link: <...>; rel="next"`
  std::optional<double> retry_after;  // seconds

  // Parses a header line, with or without its line end. A status line begins a new response:
  // headers of an interim response (100, 103) or of a proxy's CONNECT are dropped.
  void take_line(std::string_view line);
  // Identifies the object's version: its ETag without quotes and "W/", otherwise its modification
  // time; empty if the server sends neither.
  std::string version() const;
};

// The bytes [first, first + bytes) of an object, or all starting at `first`; or the last `bytes` of
// it.
struct WantedRange {
  static constexpr uint64_t kToTheEnd = UINT64_MAX;
  uint64_t first = 0, bytes = kToTheEnd;
  bool from_end = false;  // `first` is 0
  bool is_whole() const { return first == 0 && bytes == kToTheEnd; }
  std::string value() const;  // "bytes=0-99", "bytes=-100"; empty for a whole object
};

// The action for a response, once its head is complete.
enum class Verdict : uint8_t {
  kTake,       // the body is what was requested, starting at `first`
  kRedirect,   // 301, 302, 303, 307, 308 with a Location
  kAgain,      // 408, 429, 5xx
  kThrottled,  // likewise, and the server is throttling (429, 503)
  kRenew,      // rejected, perhaps because credentials have expired
  kNothing,    // 404, 410
  kChanged,    // 412 or 416: the object has changed or is shorter
  kRefused,    // any other status
  kNoRange,    // the response is the whole object instead of a part of it
  kWrong,      // the status and the headers contradict the request
};

struct Judgment {
  Verdict verdict = Verdict::kWrong;
  std::optional<uint64_t> total = {};  // bytes of the object
  std::optional<uint64_t> body = {};   // bytes of this body, if known
  uint64_t first = 0;                  // where the body begins in the object
  std::string why = {};                // for kWrong
};
Judgment judge(const HttpResponse& response, const WantedRange& wanted);
// For a PUT that must not replace an object: kChanged if the object exists.
Judgment judge_upload(const HttpResponse& response);

}  // namespace headrace
