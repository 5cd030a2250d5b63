// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/transfer.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/storage/remote/url.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

const ErrorCode kRequestFailed{
    "HR0221", ErrorKind::kStorage, "request failed",
    "The server refused a request, or did not answer, even after retries with growing pauses "
    "(hr.remote.configure(retries=...)). The message contains its answer. Without an answer, check "
    "the address, the network and its proxies. The data is not at fault, so this never counts as a "
    "bad record."};

const ErrorCode kDenied{
    "HR0231", ErrorKind::kStorage, "access denied by the server",
    "The server answered 403: the credentials may not read this object. Buckets also give this "
    "answer for a missing object if the user may not list them. Check the permissions, and the "
    "address."};

const ErrorCode kNotAuthenticated{
    "HR0232", ErrorKind::kStorage, "credentials missing or not accepted",
    "The server answered 401: it got no credentials, or does not accept them, for example because "
    "they have expired. Set them (hr.remote.configure, or the cloud's own variables and files)."};

const ErrorCode kNoRanges{
    "HR0222", ErrorKind::kStorage, "server does not support ranges",
    "A range of an object was requested, but the server sent the whole object (status 200 without "
    "Content-Range), so the dataset would be downloaded again for every record. Development "
    "servers do that (python -m http.server). Use a server that supports range requests (nginx, "
    "any object store), or copy the files to a local folder."};

const ErrorCode kUnsound{
    "HR0223", ErrorKind::kStorage, "response does not match the request",
    "The status, Content-Range or length of a response contradicts the request, so its bytes are "
    "not used. A proxy or a cache in between is the usual cause."};

constexpr size_t kMaxErrorBody = 4096;
// After this much of an error's body the connection is closed, instead of being kept for the next
// request.
constexpr uint64_t kMaxErrorBytes = uint64_t{256} << 10;
constexpr long kReceiveBuffer = 128 << 10;

// The part of a range that is missing after its first `got` bytes have arrived.
WantedRange rest_of(const WantedRange& all, uint64_t got) {
  const bool open = all.bytes == WantedRange::kToTheEnd;
  return {.first = all.first + got,
          .bytes = open ? all.bytes : all.bytes - got,
          .from_end = all.from_end};  // either nothing has arrived, or the position is known
}

Error unsized_error(const std::string& path, uint64_t limit) {
  Error error = too_large_error(path, limit, "");
  error.what = "the server sent more than " + std::to_string(limit) +
               " bytes, the limit, without stating a length";
  error.hint =
      "use a server that sends Content-Length and supports range requests (nginx, any object "
      "store), or copy the file to a local folder";
  return error;
}

bool is_same_facts(const ObjectFacts& a, const ObjectFacts& b) {
  return a.version == b.version && (!a.size || !b.size || *a.size == *b.size);
}

}  // namespace

Error request_error(const std::string& path, std::string what, std::string hint) {
  return {.code = &kRequestFailed,
          .what = std::move(what),
          .where = Where{.file = path},
          .hint = std::move(hint)};
}

// Sets the options common to all requests once, since a handle keeps them.
Transfer::Transfer(const Curl& curl, Curl::Handle* handle) : curl_(curl), handle_(handle) {
  const auto set = [&](Curl::Option option, auto value) {
    (void)curl_.easy_setopt(handle_, option, value);
  };
  set(Curl::kProtocols, Curl::kHttpAndHttps);
  set(Curl::kHttpVersion, Curl::kHttp11);
  set(Curl::kNoSignal, 1L);
  set(Curl::kTcpNoDelay, 1L);
  set(Curl::kTcpKeepAlive, 1L);
  set(Curl::kPathAsIs, 1L);
  set(Curl::kDnsShuffleAddresses, 1L);
  set(Curl::kBufferSize, kReceiveBuffer);
  set(Curl::kUserAgent, "headrace");
  set(Curl::kErrorBuffer, words_.data());
  set(Curl::kPrivate, static_cast<void*>(this));
  set(Curl::kWriteFunction, &Transfer::take_body);
  set(Curl::kWriteData, static_cast<void*>(this));
  set(Curl::kHeaderFunction, &Transfer::take_head);
  set(Curl::kHeaderData, static_cast<void*>(this));
  set(Curl::kReadFunction, &Transfer::give_body);
  set(Curl::kReadData, static_cast<void*>(this));
  set(Curl::kSeekFunction, &Transfer::seek_body);
  set(Curl::kSeekData, static_cast<void*>(this));
}

Transfer::~Transfer() {
  curl_.slist_free_all(headers_);
  curl_.easy_cleanup(handle_);
}

HttpCall FetchJob::call() const {
  if (fetch.upload) return {.method = "PUT", .body = *fetch.upload};
  const std::string& etag = facts && got > 0 ? facts->etag : fetch.if_match;
  return {.range = rest_of(fetch.range, got).value(),
          .if_match = etag.starts_with('"') ? etag : ""};  // weak ones do not match
}

WantedRange Transfer::wanted() const { return rest_of(job_->fetch.range, begin_); }

void Transfer::begin(std::shared_ptr<FetchJob> job, const HttpCall& call, HttpRequest request,
                     double time) {
  job_ = std::move(job);
  request_ = std::move(request);
  response_ = HttpResponse();
  judgment_.reset();
  failure_.reset();
  wrong_.clear();
  error_body_.clear();
  words_[0] = '\0';
  full_ = sized_ = false;
  begun_ = last_byte_ = rated_ = time;
  received_ = received_before_ = 0;
  sent_ = 0;
  begin_ = at_ = end_ = job_->got;
  text_.clear();
  text_bytes_ = error_bytes_ = 0;

  const auto set = [&](Curl::Option option, auto value) {
    (void)curl_.easy_setopt(handle_, option, value);
  };
  curl_.slist_free_all(std::exchange(headers_, nullptr));
  const auto add = [&](const std::string& header) {
    if (!header.empty()) headers_ = curl_.slist_append(headers_, header.c_str());
  };
  for (const std::string& header : request_.headers) add(header);
  if (!call.range.empty()) add("Range: " + call.range);
  if (!call.if_match.empty() && request_.asks_version) add("If-Match: " + call.if_match);
  add("Accept: */*");
  const bool uploads = job_->fetch.upload != nullptr;
  if (uploads) {
    add("Expect:");  // do not wait for "100 Continue"
    set(Curl::kUpload, 1L);
    set(Curl::kBodyBytes, static_cast<int64_t>(call.body.size()));
  } else {
    set(Curl::kGet, 1L);  // also resets kUpload
  }
  set(Curl::kUrl, request_.url.c_str());
  set(Curl::kUserPassword, request_.user.empty() ? nullptr : request_.user.c_str());
  set(Curl::kHttpHeader, headers_);
  set(Curl::kDnsCacheTimeout, job_->fresh ? 0L : 30L);
  set(Curl::kFreshConnect, job_->fresh ? 1L : 0L);
  set(Curl::kConnectTimeoutMs, static_cast<long>(job_->options->stall_seconds * 1e3) + 1);
  if (!job_->options->ca_file.empty()) set(Curl::kCaInfo, job_->options->ca_file.c_str());
}

void Transfer::came(size_t bytes) {
  last_byte_ = now();
  if (received_ == 0) rated_ = last_byte_;
  received_ += bytes;
}

bool Transfer::is_stalled(double time, double seconds, double least_rate) {
  if (time - last_byte_ > seconds) return true;
  if (time - rated_ < seconds) return false;
  const auto bytes = static_cast<double>(received_ - received_before_);
  const bool is_slow = received_ > 0 && bytes < least_rate * (time - rated_);
  rated_ = time;
  received_before_ = received_;
  return is_slow;
}

size_t Transfer::take_head(char* data, size_t size, size_t count, void* transfer) {
  auto& self = *static_cast<Transfer*>(transfer);
  self.came(size * count);
  try {
    self.response_.take_line({data, size * count});
  } catch (const std::exception&) {
    self.wrong_ = "no memory";
    return 0;
  }
  return size * count;
}

size_t Transfer::give_body(char* data, size_t size, size_t count, void* transfer) {
  auto& self = *static_cast<Transfer*>(transfer);
  const std::string& body = *self.job_->fetch.upload;
  const size_t bytes = std::min(size * count, body.size() - self.sent_);
  if (bytes > 0) std::memcpy(data, body.data() + self.sent_, bytes);
  self.sent_ += bytes;
  self.came(bytes);
  return bytes;
}

int Transfer::seek_body(void* transfer, int64_t offset, int origin) {
  auto& self = *static_cast<Transfer*>(transfer);
  const auto size = static_cast<int64_t>(self.job_->fetch.upload->size());
  if (origin != SEEK_SET || offset < 0 || offset > size) return 1;  // CURL_SEEKFUNC_FAIL
  self.sent_ = static_cast<size_t>(offset);
  return 0;
}

size_t Transfer::take_body(char* data, size_t size, size_t count, void* transfer) {
  auto& self = *static_cast<Transfer*>(transfer);
  self.came(size * count);
  try {
    return self.take({data, size * count}) ? size * count : 0;
  } catch (const std::exception&) {
    self.wrong_ = "no memory";
    return 0;
  }
}

// False if the rest of the body is not needed.
bool Transfer::judge_head() {
  const Judgment judged = job_->fetch.upload ? judge_upload(response_) : judge(response_, wanted());
  judgment_ = judged;
  if (judged.verdict == Verdict::kTake) return place(judged);
  if (judged.verdict != Verdict::kNoRange) return judged.verdict != Verdict::kWrong;
  // The whole object is an acceptable response to a first look at a file, and also if only the rest
  // was requested after an interrupted attempt.
  const WantedRange& all = job_->fetch.range;
  const bool covers = all.first == 0 && (all.bytes == WantedRange::kToTheEnd ||
                                         (judged.total && *judged.total <= all.bytes));
  if (!job_->fetch.looks && !covers) return false;
  judgment_->verdict = Verdict::kTake;
  return place(*judgment_);
}

bool Transfer::place(const Judgment& judged) {
  if (!job_->fetch.room) return true;
  ObjectFacts facts{.size = judged.total, .version = response_.version(), .etag = response_.etag};
  if (!request_.version.empty()) facts.version = facts.etag = request_.version;
  if (!response_.has_range && begin_ > 0) begin_ = at_ = 0;  // the server sends everything again
  if (job_->facts && !is_same_facts(*job_->facts, facts)) {
    judgment_->verdict = Verdict::kChanged;
    return false;
  }
  if (!facts.size) return true;  // the end of the body is the end of the object
  if (!job_->facts) {
    Result<ScatterTarget> room = job_->fetch.room(facts);
    if (!room) {
      failure_ = std::move(room.error());
      return false;
    }
    job_->room = std::move(*room);
    WantedRange& range = job_->fetch.range;
    if (range.from_end) {  // for further attempts, since the size is now known
      range.first = *facts.size - std::min(*facts.size, range.bytes);
      range.from_end = false;
    }
    job_->facts = std::move(facts);
  }
  end_ = job_->room.size();
  sized_ = true;
  if (!job_->fetch.looks && judged.body && begin_ + *judged.body != end_) {
    judgment_->verdict = Verdict::kWrong;
    judgment_->why = std::to_string(*judged.body) + " bytes for the last " +
                     std::to_string(end_ - begin_) + " of " + std::to_string(end_);
    return false;
  }
  return true;
}

bool Transfer::take(std::span<const char> data) {
  if (!judgment_ && !judge_head()) return false;
  if (judgment_->verdict != Verdict::kTake) {
    const size_t more = std::min(data.size(), kMaxErrorBody - error_body_.size());
    error_body_.append(data.data(), more);
    error_bytes_ += data.size();
    return error_bytes_ <= kMaxErrorBytes;
  }
  if (!sized_) return take_unsized(data);
  size_t count = data.size();
  if (count > end_ - at_) {
    if (!job_->fetch.looks) {
      judgment_->verdict = Verdict::kWrong;
      judgment_->why = "a body longer than its Content-Range";
      return false;
    }
    count = static_cast<size_t>(end_ - at_);
  }
  job_->room.write(at_, {reinterpret_cast<const uint8_t*>(data.data()), count});
  at_ += count;
  job_->got = std::max(job_->got, at_);
  full_ = job_->fetch.looks && at_ == end_;
  return count == data.size();
}

bool Transfer::take_unsized(std::span<const char> data) {
  const Fetch& fetch = job_->fetch;
  if (data.size() > fetch.max_bytes - text_bytes_) {
    failure_ = unsized_error(fetch.path, fetch.max_bytes);
    return false;
  }
  text_bytes_ += data.size();
  const uint64_t kept = fetch.looks ? fetch.range.bytes : WantedRange::kToTheEnd;
  text_.append(data.data(), std::min<uint64_t>(data.size(), kept - text_.size()));
  return true;
}

std::string Transfer::element_of_error(std::string_view name) const {
  const std::string open = "<" + std::string(name) + ">", close = "</" + std::string(name) + ">";
  const size_t begin = error_body_.find(open);
  if (begin == std::string::npos) return {};
  const size_t from = begin + open.size(), end = error_body_.find(close, from);
  if (end == std::string::npos) return {};
  std::string out = error_body_.substr(from, std::min<size_t>(end - from, 200));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  }
  return out;
}

FetchResult Transfer::refused() const {
  std::string what = "the server answered " + std::to_string(response_.status);
  const std::string code = service_code(), message = element_of_error("Message");
  if (!code.empty()) what += " (" + code + (message.empty() ? "" : ": " + message) + ")";
  FetchResult out;
  Error error = request_error(job_->fetch.path, std::move(what));
  if (response_.status == 401 || response_.status == 403) {
    error.code = response_.status == 401 ? &kNotAuthenticated : &kDenied;
    error.hint = "check the credentials, and that they may read it";
  }
  out.result = std::move(error);
  return out;
}

Transfer::Outcome Transfer::outcome(int code) {
  using Kind = Outcome::Kind;
  if (failure_) {
    FetchResult failed;
    failed.result = std::move(*failure_);
    return {.kind = Kind::kFailed, .failed = std::move(failed)};
  }
  if (!wrong_.empty()) return {.kind = Kind::kAgain, .why = wrong_};
  const bool has_head = response_.status != 0;
  // An empty body has not been checked yet.
  if (has_head && !judgment_ && code == Curl::kOk) (void)judge_head();
  if (failure_) return outcome(code);
  if (has_head && judgment_ && judgment_->verdict != Verdict::kTake) {
    const bool again =
        judgment_->verdict == Verdict::kAgain || judgment_->verdict == Verdict::kThrottled;
    if (again && job_->fetch.range.from_end) {  // not all servers support such ranges
      return {.kind = Kind::kFailed, .failed = refused()};
    }
    switch (judgment_->verdict) {
      case Verdict::kRedirect:
        return {.kind = Kind::kRedirect};
      case Verdict::kAgain:
        return {.kind = Kind::kAgain,
                .why = "the server answered " + std::to_string(response_.status)};
      case Verdict::kThrottled:
        return {.kind = Kind::kThrottled,
                .why = "the server answered " + std::to_string(response_.status)};
      case Verdict::kRenew:
        return {.kind = Kind::kRenew, .failed = refused()};
      case Verdict::kNothing:
        return {.kind = Kind::kFailed, .failed = {.found = false}};
      case Verdict::kChanged: {
        FetchResult failed{.changed = true};
        failed.facts.size = judgment_->total;
        return {.kind = Kind::kFailed, .failed = std::move(failed)};
      }
      case Verdict::kNoRange: {
        FetchResult failed;
        failed.result = Error{.code = &kNoRanges,
                              .what = "it sent the whole object instead of a range",
                              .where = Where{.file = job_->fetch.path},
                              .hint = "use a server with range requests, or copy the files"};
        return {.kind = Kind::kFailed, .failed = std::move(failed)};
      }
      case Verdict::kWrong: {
        FetchResult failed;
        failed.result = Error{.code = &kUnsound,
                              .what = "it sent " + judgment_->why,
                              .where = Where{.file = job_->fetch.path},
                              .hint = "look for a proxy or a cache between here and the server"};
        return {.kind = Kind::kFailed, .failed = std::move(failed)};
      }
      default:
        return {.kind = Kind::kFailed, .failed = refused()};
    }
  }
  if (full_ || has_all()) return {.kind = Kind::kWhole};
  if (code != Curl::kOk) {
    const char* words = words_[0] != '\0' ? words_.data() : curl_.easy_strerror(code);
    if (code == Curl::kBadCertificate || code == Curl::kBadCaFile || code == Curl::kBadUrl) {
      FetchResult failed;
      failed.result = request_error(job_->fetch.path, words,
                                    "specify the certificates: hr.remote.configure(ca_file=...)");
      return {.kind = Kind::kFailed, .failed = std::move(failed)};
    }
    return {.kind = Kind::kAgain, .why = words};
  }
  if (!has_head) return {.kind = Kind::kAgain, .why = "an answer without a status"};
  if (sized_ && at_ < end_) {
    return {.kind = Kind::kAgain,
            .why = "a body that ended after " + std::to_string(at_) + " of " +
                   std::to_string(end_) + " bytes"};
  }
  return {.kind = Kind::kWhole};
}

}  // namespace headrace
