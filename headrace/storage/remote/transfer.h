// SPDX-License-Identifier: Apache-2.0
// One request in flight: an easy handle of libcurl, the received head, and the body's destination.
// Belongs to the client's thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/storage/remote/curl_functions.h"
#include "headrace/storage/remote/pace.h"
#include "headrace/storage/remote/range_client.h"

namespace headrace {

class Transfer;

// A fetch, over all its attempts.
struct FetchJob {
  FetchJob(Fetch wanted, std::shared_ptr<const RemoteOptions> given)
      : fetch(std::move(wanted)),
        options(std::move(given)),
        backoff(options->first_pause, options->longest_pause) {}

  Fetch fetch;
  const std::shared_ptr<const RemoteOptions> options;  // shared: as set at submission
  Backoff backoff;
  double begun = 0;  // start of the first attempt
  int tries = 0, redirects = 0;
  bool fresh = false;  // the next attempt uses a new connection, and resolves the host again
  bool renewed = false;
  bool copy_waits = false;           // its second attempt (hedge) waits for a connection
  std::optional<HttpRequest> moved;  // the target of a redirect
  uint64_t got = 0;                  // bytes at their destination, from the start of the range
  std::optional<ObjectFacts> facts;  // of the version being read
  ScatterTarget room;                // destination of all bytes, once `facts` are known
  // One transfer, or several while the fetch is hedged, in order of their start.
  std::vector<Transfer*> transfers = {};
  std::optional<std::stop_callback<std::function<void()>>> on_unneeded = {};

  // Whether all bytes are at their destination.
  bool has_all() const { return facts && got == room.size(); }
  // The next attempt: requests the missing part, of the version being read.
  HttpCall call() const;
};

class Transfer {
 public:
  Transfer(const Curl& curl, Curl::Handle* handle);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Prepares the handle. REQUIRES: the caller then adds it to a multi handle.
  void begin(std::shared_ptr<FetchJob> job, const HttpCall& call, HttpRequest request, double time);

  // The result, once libcurl is done with it.
  struct Outcome {
    enum class Kind : uint8_t { kWhole, kAgain, kThrottled, kRedirect, kRenew, kFailed } kind;
    std::string why = {};  // for kAgain and kThrottled: what happened
    FetchResult failed = {};
  };
  Outcome outcome(int code);

  FetchJob& job() { return *job_; }
  const std::shared_ptr<FetchJob>& shared_job() const { return job_; }
  Curl::Handle* handle() const { return handle_; }
  const HttpResponse& response() const { return response_; }
  const HttpRequest& request() const { return request_; }
  std::string& text() { return text_; }
  uint64_t text_bytes() const { return text_bytes_; }  // of the body; `text` may have fewer
  bool is_sized() const { return sized_; }
  // Whether all requested bytes have arrived, even if the body has not ended.
  bool has_all() const { return sized_ && at_ == end_; }
  // Whether the head says that the body is not what was requested.
  bool is_refused() const { return judgment_ && judgment_->verdict != Verdict::kTake; }
  double begun() const { return begun_; }
  // Whether no byte has arrived for `seconds`, or fewer than `least_rate` bytes per second on
  // average over a period of `seconds`.
  bool is_stalled(double time, double seconds, double least_rate);
  uint64_t bytes() const { return at_ - begin_; }
  std::string service_code() const { return element_of_error("Code"); }

 private:
  static size_t take_head(char* data, size_t size, size_t count, void* transfer);
  static size_t take_body(char* data, size_t size, size_t count, void* transfer);
  static size_t give_body(char* data, size_t size, size_t count, void* transfer);
  static int seek_body(void* transfer, int64_t offset, int origin);
  bool take(std::span<const char> data);
  bool judge_head();
  bool place(const Judgment& judged);
  bool take_unsized(std::span<const char> data);
  WantedRange wanted() const;
  std::string element_of_error(std::string_view name) const;
  FetchResult refused() const;

  const Curl& curl_;
  Curl::Handle* const handle_;
  curl_slist* headers_ = nullptr;
  std::array<char, 256> words_{};  // libcurl's error message
  std::shared_ptr<FetchJob> job_;  // shared: with the other transfer of a hedge, and timers
  HttpRequest request_;
  HttpResponse response_;
  std::optional<Judgment> judgment_;
  void came(size_t bytes);
  double begun_ = 0, last_byte_ = 0;
  size_t sent_ = 0;  // bytes uploaded so far
  // Received bytes of head and body: now, and at `rated_`, the start of the period whose rate is
  // checked.
  uint64_t received_ = 0, received_before_ = 0;
  double rated_ = 0;
  uint64_t begin_ = 0, at_ = 0, end_ = 0;  // offsets in the job's bytes
  bool sized_ = false;                     // `end_` is known
  bool full_ = false;                      // Fetch::looks: the room is full
  std::string text_;                       // a body without `room`, or without a length
  uint64_t text_bytes_ = 0;
  std::string error_body_;
  uint64_t error_bytes_ = 0;
  std::optional<Error> failure_;
  std::string wrong_;
};

}  // namespace headrace
