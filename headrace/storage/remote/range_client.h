// SPDX-License-Identifier: Apache-2.0
// Reads ranges of objects by HTTP: hundreds of requests at once on one thread of its own, which
// owns every connection and transfer. Callers put requests into an inbox, from any thread, and get
// one call with the answer, on the client's thread: it must not wait, nor throw.
//
// Errors that may be temporary (a reset, a short body, 408, 429, 5xx, no byte for some seconds) are
// retried here, from the missing byte on; the slowest requests are sent a second time. A body goes
// from libcurl's buffer to its place, once its status, range and version were compared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/storage/byte_places.h"
#include "headrace/storage/remote/http_response.h"
#include "headrace/storage/remote/remote_options.h"

namespace headrace {

// One attempt's request. The client sends it; some clouds sign it, too.
struct HttpCall {
  std::string_view method = "GET";
  std::string range = {};      // "bytes=0-99"; empty: the whole object
  std::string if_match = {};   // an ETag
  std::string_view body = {};  // of a PUT, which must not replace an object
};

// One try: signed, as the time has it.
struct HttpRequest {
  std::string url;
  std::string user = {};                  // "name:password"
  std::vector<std::string> headers = {};  // "Name: value"
  // For the object of a kept redirect from `url`: its version by the answer that redirected. The
  // ETag of the server that delivers it is another, and not compared.
  std::string version = {};
  bool asks_version = true;  // by If-Match; false where the ETags of a listing are of another kind
  bool any_host = false;  // the protocol redirects to other hosts; never to one without TLS, though
};

// Facts about an object from the head of a good response.
struct ObjectFacts {
  std::optional<uint64_t> size = {};
  std::string version = {};  // HttpResponse::version()
  std::string etag = {};     // as it was sent
};

struct FetchResult {
  Result<void> result = {};
  bool found = true;     // false: the server has no such object; `result` is good
  bool changed = false;  // the server has another version; `result` is good
  uint64_t got = 0;      // bytes that were written
  std::string text = {};
  std::string next_page = {};  // HttpResponse::next_page
  ObjectFacts facts = {};
};

struct Fetch {
  std::string path;    // in messages
  std::string server;  // requests to one share a limit
  std::function<Result<HttpRequest>(const HttpCall&)> request;
  WantedRange range = {};
  std::string if_match = {};  // an ETag; empty: whatever version there is
  // Where the bytes go, all that the object has of the range: called once the head of a response is
  // there, and again for each further try, which must get the same place for the same facts.
  // Without it the body becomes `text`.
  std::function<Result<BytePlaces>(const ObjectFacts&)> room = {};
  // A first look: a server that sends the whole object instead of a range is let go once the room
  // is full.
  bool looks = false;
  // Asked once, on a thread that may wait, when a request was refused with this code of the
  // service: whether credentials or the address were renewed, so that it is worth another try.
  std::function<bool(const HttpResponse&, std::string_view code)> renew = {};
  // Told of a redirect that is followed, before it is. Returns the version of what it leads to,
  // where the answer said so: HttpRequest::version. On the client's thread; must not wait.
  std::function<std::string(const HttpResponse&, const std::string& to)> redirected = {};
  // An object's content, to be stored where there is no object yet: `changed` where there is one.
  std::shared_ptr<const std::string> upload = {};  // shared: with who made it
  std::function<void(FetchResult)> done;
};

class RangeClient {
 public:
  // The process's, whose thread begins with its first request. A forked child gets its own.
  static RangeClient& of_process();

  RangeClient();
  ~RangeClient();  // ends what is under way with an error
  RangeClient(const RangeClient&) = delete;
  RangeClient& operator=(const RangeClient&) = delete;

  void submit(Fetch fetch);
  // The same, and waits for it. REQUIRES: not the client's thread.
  FetchResult fetch(Fetch fetch);

  struct Loop;

 private:
  const std::unique_ptr<Loop> loop_;
};

// HR0221: what a server answered, or that it did not. Addresses are shown without their query.
Error request_error(const std::string& path, std::string what, std::string hint = {});

}  // namespace headrace
