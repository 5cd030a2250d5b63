// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/http_response.h"

#include <algorithm>

#include "headrace/base/number_text.h"
#include "headrace/base/text.h"

namespace headrace {
namespace {

void take_range(std::string_view value, HttpResponse& out) {
  if (!lower_case(value.substr(0, 6)).starts_with("bytes ")) return;
  value = trimmed(value.substr(6));
  const size_t slash = value.find('/');
  if (slash == std::string_view::npos) return;
  const std::string_view span = value.substr(0, slash), total = value.substr(slash + 1);
  out.range_total = number_from<uint64_t>(total);
  if (!out.range_total && total != "*") return;
  if (span != "*") {
    const size_t dash = span.find('-');
    if (dash == std::string_view::npos) return;
    out.range_first = number_from<uint64_t>(span.substr(0, dash));
    out.range_last = number_from<uint64_t>(span.substr(dash + 1));
    if (!out.range_first || !out.range_last || *out.range_last < *out.range_first ||
        *out.range_last == UINT64_MAX) {
      return;
    }
  }
  out.has_range = true;
}

Judgment wrong(std::string why) { return {.verdict = Verdict::kWrong, .why = std::move(why)}; }

std::string range_text(const HttpResponse& response) {
  if (!response.range_first) return "none";
  return std::to_string(*response.range_first) + "-" + std::to_string(*response.range_last);
}

// Judges a body with a Content-Range, regardless of the status (some servers answer 200).
Judgment judge_range(const HttpResponse& response, const WantedRange& wanted) {
  if (!response.range_first) return wrong("a body without a range");
  const uint64_t first = *response.range_first, body = *response.range_last - first + 1;
  // Without the size, a prefix could be mistaken for the whole object, and the rest would be
  // silently missing.
  if (!response.range_total) return wrong("a range without the object's size");
  const uint64_t total = *response.range_total;
  if (*response.range_last >= total) {
    return wrong("a range beyond the end: bytes " + range_text(response) + " of " +
                 std::to_string(total));
  }
  // The body may be shorter than requested only at the object's end.
  const bool to_the_end = first + body == total;
  const bool is_all = body == wanted.bytes || (body < wanted.bytes && to_the_end);
  const uint64_t begin = wanted.from_end ? total - std::min(total, wanted.bytes) : wanted.first;
  if (first != begin || !is_all) {
    return wrong("bytes " + range_text(response) + " for \"Range: " + wanted.value() + "\"");
  }
  if (response.length && *response.length != body) {
    return wrong("a length of " + std::to_string(*response.length) + " for bytes " +
                 range_text(response));
  }
  return {.verdict = Verdict::kTake, .total = total, .body = body, .first = first};
}

Judgment judge_body(const HttpResponse& response, const WantedRange& wanted) {
  const std::string coding = lower_case(response.encoding);
  if (!coding.empty() && coding != "identity") {
    return wrong("a body in the coding \"" + coding + "\", which was not requested");
  }
  if (response.has_range) return judge_range(response, wanted);
  if (response.status == 206) return wrong("206 without a valid Content-Range");
  // The response is the whole object.
  const std::optional<uint64_t> total = response.length;
  const bool fits = wanted.first == 0 &&
                    (wanted.bytes == WantedRange::kToTheEnd || (total && *total <= wanted.bytes));
  return {.verdict = fits ? Verdict::kTake : Verdict::kNoRange, .total = total, .body = total};
}

// Parses RFC 8288: <address>; rel="next", and perhaps others.
std::string next_of_link(std::string_view value) {
  while (true) {
    const size_t open = value.find('<');
    const size_t close = value.find('>', open == std::string_view::npos ? 0 : open);
    if (open == std::string_view::npos || close == std::string_view::npos) return {};
    const std::string_view target = value.substr(open + 1, close - open - 1);
    value.remove_prefix(close + 1);
    const std::string_view parameters = value.substr(0, value.find('<'));
    if (parameters.find("rel=\"next\"") != std::string_view::npos ||
        parameters.find("rel=next") != std::string_view::npos) {
      return std::string(target);
    }
  }
}

}  // namespace

void HttpResponse::take_line(std::string_view line) {
  line = trimmed(line);
  if (line.starts_with("HTTP/")) {
    *this = HttpResponse();
    const size_t blank = line.find(' ');
    if (blank != std::string_view::npos) {
      status = static_cast<int>(number_from<uint64_t>(line.substr(blank + 1, 3)).value_or(0));
    }
    return;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string name = lower_case(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (name == "content-range") {
    take_range(value, *this);
  } else if (name == "content-length") {
    length = number_from<uint64_t>(value);
  } else if (name == "etag") {
    etag = value;
  } else if (name == "last-modified") {
    modified = value;
  } else if (name == "content-encoding") {
    encoding = value;
  } else if (name == "location") {
    location = value;
  } else if (name == "retry-after") {
    if (const auto seconds = number_from<uint64_t>(value))
      retry_after = static_cast<double>(*seconds);
  } else if (name == "x-amz-bucket-region") {
    region = value;
  } else if (name == "x-linked-etag") {
    linked_etag = value;
  } else if (name == "link") {
    next_page = next_of_link(value);
  }
}

std::string HttpResponse::version() const {
  std::string_view core = etag;
  if (core.starts_with("W/")) core.remove_prefix(2);
  if (core.size() >= 2 && core.front() == '"' && core.back() == '"') {
    core = core.substr(1, core.size() - 2);
  }
  return core.empty() ? modified : std::string(core);
}

std::string WantedRange::value() const {
  if (is_whole()) return {};
  if (from_end) return "bytes=-" + std::to_string(bytes);
  return "bytes=" + std::to_string(first) + "-" +
         (bytes == kToTheEnd ? "" : std::to_string(first + bytes - 1));
}

Judgment judge(const HttpResponse& response, const WantedRange& wanted) {
  const auto only = [](Verdict verdict) { return Judgment{.verdict = verdict}; };
  switch (response.status) {
    case 200:
    case 206:
      return judge_body(response, wanted);
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      return only(response.location.empty() ? Verdict::kRenew : Verdict::kRedirect);
    case 400:
    case 401:
    case 403:
      return only(Verdict::kRenew);
    case 404:
    case 410:
      return only(Verdict::kNothing);
    case 412:
      return only(Verdict::kChanged);
    case 416:
      return {.verdict = Verdict::kChanged, .total = response.range_total};
    case 408:
      return only(Verdict::kAgain);
    case 429:
    case 503:
      return only(Verdict::kThrottled);
    default:
      return only(response.status >= 500 ? Verdict::kAgain : Verdict::kRefused);
  }
}

Judgment judge_upload(const HttpResponse& response) {
  switch (response.status) {
    case 200:
    case 201:
    case 204:
      return {.verdict = Verdict::kTake};
    case 409:  // Azure's 412; S3: another upload is in progress
      return {.verdict = Verdict::kChanged};
    default:
      return judge(response, {});
  }
}

}  // namespace headrace
