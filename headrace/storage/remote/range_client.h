// SPDX-License-Identifier: Apache-2.0
// Reads ranges of objects by HTTP: hundreds of concurrent requests on one thread, which owns every
// connection and transfer. Any thread may submit requests. The answer is passed to one callback on
// the client's thread, which must not wait or throw.
//
// Errors that may be temporary (a reset, a short body, 408, 429, 5xx, no byte for some seconds) are
// retried here, starting at the missing byte; the slowest requests are sent a second time. A body
// is copied from libcurl's buffer directly to its destination, after its status, range and version
// were checked.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/base/mutex.h"
#include "headrace/storage/remote/http_response.h"
#include "headrace/storage/remote/remote_options.h"
#include "headrace/storage/scatter_target.h"

namespace headrace {

// The request of one attempt, as the client sends it; some clouds sign these parts.
struct HttpCall {
  std::string_view method = "GET";
  std::string range = {};      // "bytes=0-99"; empty: the whole object
  std::string if_match = {};   // an ETag
  std::string_view body = {};  // for a PUT, which must not replace an object
};

// The request of one attempt, signed with the current time.
struct HttpRequest {
  std::string url;
  std::string user = {};                  // "name:password"
  std::vector<std::string> headers = {};  // "Name: value"
  // If `url` is the cached target of a redirect: the version given in the redirecting response. The
  // ETag of the delivering server differs, and is not compared.
  std::string version = {};
  bool asks_version = true;  // send If-Match; false if listings have other ETags
  bool any_host = false;     // may be redirected to any host with TLS
};

// Facts about an object from the head of a valid response.
struct ObjectFacts {
  std::optional<uint64_t> size = {};
  std::string version = {};  // HttpResponse::version()
  std::string etag = {};     // as sent
};

struct FetchResult {
  Result<void> result = {};
  bool found = true;     // false: the server has no such object; `result` is good
  bool changed = false;  // the server has another version; `result` is good
  uint64_t got = 0;      // bytes that were written
  std::string text = {};
  std::string next_page = {};  // HttpResponse::next_page
  ObjectFacts facts = {};
  // The options when it was submitted; null if it was canceled. shared: the process's
  std::shared_ptr<const RemoteOptions> options = {};
};

struct Fetch {
  static constexpr uint64_t kMaxUnsized = uint64_t{256} << 20;  // listings
  static constexpr uint64_t kMaxUnsizedObject = uint64_t{1} << 30;

  std::string path;    // in messages
  std::string server;  // requests to one share a limit
  std::function<Result<HttpRequest>(const std::string& path, const HttpCall&)> request;
  WantedRange range = {};
  std::string if_match = {};  // an ETag; empty: any version
  // Where the bytes go, all bytes of the range that the object has: called once the head of a
  // response has arrived, and again for each further attempt, which must get the same place for the
  // same facts. Without it the body becomes `text`.
  std::function<Result<ScatterTarget>(const ObjectFacts&)> room = {};
  // A first look: if a server sends the whole object instead of a range, the transfer is ended once
  // the room is full.
  bool looks = false;
  // Maximum size of a body whose length the server does not state; a longer one is HR0206. A look
  // keeps only the bytes that it requested, and counts the rest.
  uint64_t max_bytes = kMaxUnsized;
  // Called once, on a thread that may wait, if a request was rejected with this code of the
  // service: returns whether credentials or the address were renewed, so that another attempt is
  // worthwhile.
  std::function<bool(const std::string& path, const HttpResponse&, std::string_view code)> renew =
      {};
  // Called before a redirect is followed. Returns the version of its target (HttpRequest::version),
  // if the response states it. Called on the client's thread; must not wait.
  std::function<std::string(const std::string& path, const HttpResponse&, const std::string& to)>
      redirected = {};
  // An object's content, to be stored if the object does not exist yet; if it does, the result is
  // `changed`.
  std::shared_ptr<const std::string> upload = {};  // shared with the caller
  std::function<void(FetchResult)> done;
  std::stop_token unneeded = {};  // once stopped, it ends with an error
};

// A submitted fetch. Destroying this cancels it.
class PendingFetch {
 public:
  // Cancels the fetch at the deadline of this thread's reads (read_deadline.h). REQUIRES: called
  // once, not on the client's thread.
  FetchResult wait();
  ~PendingFetch();
  PendingFetch(const PendingFetch&) = delete;
  PendingFetch& operator=(const PendingFetch&) = delete;

 private:
  friend class RangeClient;
  struct State {
    Mutex mutex;
    Condition changed;
    std::optional<FetchResult> result GUARDED_BY(mutex);
  };
  PendingFetch(std::string path, uint64_t first)
      : path_(std::move(path)), first_(first), state_(std::make_shared<State>()) {}

  const std::string path_;
  const uint64_t first_;
  const std::shared_ptr<State> state_;  // shared: with the fetch, which may end later
  std::stop_source unneeded_;
};

class RangeClient {
 public:
  // The process's client, whose thread starts with its first request. A forked child gets its own.
  static RangeClient& of_process();

  RangeClient();
  ~RangeClient();  // ends requests in progress with an error
  RangeClient(const RangeClient&) = delete;
  RangeClient& operator=(const RangeClient&) = delete;

  void submit(Fetch fetch);
  // REQUIRES: the fetch has neither `done` nor `unneeded`.
  std::unique_ptr<PendingFetch> submitted(Fetch fetch);
  // The same, and waits for it. REQUIRES: not the client's thread.
  FetchResult fetch(Fetch fetch);

  struct Loop;

 private:
  const std::unique_ptr<Loop> loop_;
};

// HR0221 (HR0231, HR0232: it denies access): the server's response, or that there was none.
// Addresses are shown without their query.
Error request_error(const std::string& path, std::string what, std::string hint = {});

// Whether a request may follow a redirect (redirect.cc): the request for the URL that `from` is
// redirected to. Headers and credentials are for the original server, so they are not sent to
// another one. If the redirect must not be followed, `what` of the error is the reason: "to another
// server, https://other". `any_redirect`: RemoteOptions::any_redirect.
Result<HttpRequest> redirected(const HttpRequest& from, const std::string& location,
                               bool any_redirect);

}  // namespace headrace
