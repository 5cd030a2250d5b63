// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/range_client.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/base/mutex.h"
#include "headrace/base/per_process.h"
#include "headrace/base/signals.h"
#include "headrace/storage/burst_threads.h"
#include "headrace/storage/read_deadline.h"
#include "headrace/storage/remote/curl_loop.h"
#include "headrace/storage/remote/pace.h"
#include "headrace/storage/remote/transfer.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

using Job = std::shared_ptr<FetchJob>;  // shared: by its transfers and by its waiters

constexpr double kTick = 0.02;  // seconds between checks for stalled or slow requests
constexpr int kMaxRedirects = 5, kMaxIdle = 512;
constexpr size_t kMaxCopies = 3;  // maximum concurrent transfers of a slow request
constexpr size_t kRenewals = 4;   // concurrent renewals, for different buckets and hosts
constexpr char kUnneeded[] = "its reader was closed";

// The requests to one server or bucket.
struct Server {
  explicit Server(const RemoteOptions& options)
      : limit(options.connections), hedges(options.hedge_seconds) {}
  std::deque<Job> waiting;
  std::deque<Job> slow;  // to be sent a second time, before `waiting`
  int under_way = 0;
  RequestLimit limit;
  Hedges hedges;
};

FetchResult failure(Error error) {
  FetchResult out;
  out.result = std::move(error);
  return out;
}

std::string seconds_text(double seconds) {
  std::string out = std::to_string(seconds);
  out.resize(out.find('.') + 2);
  return out + " s";
}

// The size by which Hedges classifies requests; 0 for listings and other bodies without `room`.
uint64_t bytes_of(const Fetch& fetch) { return fetch.room ? fetch.range.bytes : 0; }

}  // namespace

struct RangeClient::Loop {
  ~Loop() { stop(); }

  void submit(Fetch fetch) EXCLUDES_LOCK(mutex);
  void stop() EXCLUDES_LOCK(mutex);

  // Input from other threads.
  struct Arrival {
    Job job;
    bool renewed = false;                // after a rejection: try again
    std::optional<FetchResult> refused;  // the rejected result
  };
  void put(Arrival arrival) EXCLUDES_LOCK(mutex);

  // Everything below belongs to the thread.
  void run();
  void take_arrivals() EXCLUDES_LOCK(mutex);
  void enqueue(Job job);
  void begin_waiting();
  bool begin(const Job& job, Server& server);  // whether a request was sent
  void begin_copy(const Job& job, Server& server);
  void poll_and_handle();
  void finish(Transfer& transfer, int code);
  void release(Transfer& transfer);
  void again(const Job& job, const std::string& why, std::optional<double> asked);
  void redirect(const Job& job, const HttpRequest& from, const HttpResponse& response);
  void renew(const Job& job, FetchResult refused, const HttpResponse& response, std::string code);
  void whole(const Job& job, Transfer& transfer);
  void answer(const Job& job, FetchResult result);
  void find_slow_requests();
  void cancel_unneeded();
  void end_all();
  void end(const std::function<bool(const Job&)>& which, const std::string& why);
  Server& server_of(const FetchJob& job);

  CurlLoop curl;

  Mutex mutex;
  std::vector<Arrival> inbox GUARDED_BY(mutex);
  std::thread thread GUARDED_BY(mutex);
  bool stopping GUARDED_BY(mutex) = false;

  std::map<std::string, Server, std::less<>> servers;
  std::vector<std::unique_ptr<Transfer>> idle;
  std::map<Transfer*, std::unique_ptr<Transfer>> active;
  std::multimap<double, Job> pauses;
  double next_tick = 0;
  bool over = false;
  std::atomic<bool> some_unneeded = false;  // set by any thread
  std::minstd_rand random{std::random_device{}()};
  BurstThreads renewals{kRenewals};
};

void RangeClient::Loop::stop() {
  std::thread running;
  {
    MutexLock lock(mutex);
    stopping = true;
    running.swap(thread);
    if (running.joinable()) curl.wake();
  }
  if (running.joinable()) running.join();
}

void RangeClient::Loop::submit(Fetch fetch) {
  auto job = std::make_shared<FetchJob>(std::move(fetch), remote_options());
  if (curl.missing()) return job->fetch.done(failure(*curl.missing()));
  if (job->fetch.unneeded.stop_possible()) {
    job->on_unneeded.emplace(job->fetch.unneeded, [this] {
      some_unneeded = true;
      curl.wake();
    });
  }
  put({.job = std::move(job), .refused = {}});
}

void RangeClient::Loop::put(Arrival arrival) {
  {
    MutexLock lock(mutex);
    if (!stopping) {
      if (!thread.joinable()) {
        const BlockedSignals blocked;
        thread = std::thread([this] { run(); });
      }
      inbox.push_back(std::move(arrival));
      if (inbox.size() == 1) curl.wake();
      return;
    }
  }
  arrival.job->fetch.done(
      failure(request_error(arrival.job->fetch.path, "the process is exiting")));
}

// Uses the options from the time when the request was submitted.
void RangeClient::Loop::enqueue(Job job) {
  Server& server = server_of(*job);
  server.limit.set_most(job->options->connections);
  server.hedges.set_least(job->options->hedge_seconds);
  server.waiting.push_back(std::move(job));
}

Server& RangeClient::Loop::server_of(const FetchJob& job) {
  return servers.try_emplace(job.fetch.server, *job.options).first->second;
}

void RangeClient::Loop::run() {
  pthread_setname_np(pthread_self(), "hr-remote");
  curl.begin(kMaxIdle);
  while (!over) {
    take_arrivals();
    cancel_unneeded();
    begin_waiting();  // immediately after taking arrivals, without waiting
    poll_and_handle();
    while (const auto done = curl.next_done()) {
      finish(*static_cast<Transfer*>(done->transfer), done->code);
    }
    find_slow_requests();
  }
  end_all();
  curl.end();
}

void RangeClient::Loop::take_arrivals() {
  std::vector<Arrival> arrived;
  {
    MutexLock lock(mutex);
    arrived.swap(inbox);
    over = stopping;
  }
  for (Arrival& arrival : arrived) {
    // It may have become unneeded before it was anywhere that cancel_unneeded() looks.
    if (arrival.job->fetch.unneeded.stop_requested()) some_unneeded = true;
    if (!arrival.refused) {
      enqueue(std::move(arrival.job));
    } else if (arrival.renewed) {
      server_of(*arrival.job).waiting.push_front(std::move(arrival.job));
    } else {
      answer(arrival.job, std::move(*arrival.refused));
    }
  }
  const double time = now();
  while (!pauses.empty() && pauses.begin()->first <= time) {
    Job job = std::move(pauses.begin()->second);
    pauses.erase(pauses.begin());
    server_of(*job).waiting.push_front(std::move(job));
  }
}

void RangeClient::Loop::begin_waiting() {
  for (auto& [name, server] : servers) {
    while (!server.slow.empty() || !server.waiting.empty()) {
      if (server.under_way >= server.limit.now()) {
        server.limit.all_in_use(now());
        break;
      }
      if (!server.slow.empty()) {
        const Job job = std::move(server.slow.front());
        server.slow.pop_front();
        begin_copy(job, server);
        continue;
      }
      const Job job = std::move(server.waiting.front());
      server.waiting.pop_front();
      (void)begin(job, server);
    }
  }
}

// The second transfer of a slow request (hedge) counts as a connection, but not as an attempt.
void RangeClient::Loop::begin_copy(const Job& job, Server& server) {
  job->copy_waits = false;
  const bool answered = job->transfers.empty();  // or it waits for another attempt
  if (answered || job->has_all() || server.limit.is_throttled(now()) || !server.hedges.take())
    return;
  job->fresh = true;
  if (begin(job, server)) --job->tries;
}

bool RangeClient::Loop::begin(const Job& job, Server& server) {
  if (job->fetch.unneeded.stop_requested() && job->transfers.empty()) {
    answer(job, failure(request_error(job->fetch.path, kUnneeded)));
    return false;
  }
  const HttpCall call = job->call();
  Result<HttpRequest> request =
      job->moved ? Result(*job->moved) : job->fetch.request(job->fetch.path, call);
  if (!request) {
    // The other transfer of a hedged request continues.
    if (job->transfers.empty()) answer(job, failure(std::move(request.error())));
    return false;
  }
  const double time = now();
  if (job->tries++ == 0) job->begun = time;
  server.hedges.begun();
  std::unique_ptr<Transfer> transfer;
  if (!idle.empty()) {
    transfer = std::move(idle.back());
    idle.pop_back();
  } else {
    transfer = std::make_unique<Transfer>(curl.curl(), curl.curl().easy_init());
  }
  transfer->begin(job, call, std::move(*request), time);
  ++server.under_way;
  job->transfers.push_back(transfer.get());
  curl.add(transfer->handle());
  active.emplace(transfer.get(), std::move(transfer));
  return true;
}

void RangeClient::Loop::poll_and_handle() {
  double due = over ? 0 : now() + 3600;
  if (!active.empty()) due = std::min(due, next_tick);
  if (!pauses.empty()) due = std::min(due, pauses.begin()->first);
  for (const auto& [name, server] : servers) {  // the limit grows with time
    if (!server.waiting.empty()) due = std::min(due, now() + 1);
  }
  curl.wait(due);
}

void RangeClient::Loop::release(Transfer& transfer) {
  curl.remove(transfer.handle());
  --server_of(transfer.job()).under_way;
  std::erase(transfer.job().transfers, &transfer);
  auto node = active.extract(&transfer);
  if (idle.size() < kMaxIdle) idle.push_back(std::move(node.mapped()));
}

void RangeClient::Loop::finish(Transfer& transfer, int code) {
  using Kind = Transfer::Outcome::Kind;
  const Job job = transfer.shared_job();
  Transfer::Outcome outcome = transfer.outcome(code);
  if (outcome.kind == Kind::kWhole) return whole(job, transfer);
  const HttpRequest request = transfer.request();
  const HttpResponse response = transfer.response();
  std::string service_code = transfer.service_code();
  release(transfer);
  if (outcome.kind == Kind::kThrottled) server_of(*job).limit.throttled(now());
  if (!job->transfers.empty()) return;  // the other transfer of a hedge continues
  switch (outcome.kind) {
    case Kind::kAgain:
      job->fresh = true;
      return again(job, outcome.why, response.retry_after);
    case Kind::kThrottled:
      return again(job, outcome.why, response.retry_after);
    case Kind::kRedirect:
      return redirect(job, request, response);
    case Kind::kRenew:
      return renew(job, std::move(outcome.failed), response, std::move(service_code));
    default:
      return answer(job, std::move(outcome.failed));
  }
}

void RangeClient::Loop::whole(const Job& job, Transfer& transfer) {
  FetchResult out;
  const double took = now() - transfer.begun();
  server_of(*job).hedges.took(bytes_of(job->fetch), took);
  out.got = job->got;
  if (job->facts) out.facts = *job->facts;
  if (!transfer.is_sized()) {
    out.text = std::move(transfer.text());
    out.next_page = transfer.response().next_page;
    out.facts = {.size = transfer.text_bytes(),
                 .version = transfer.response().version(),
                 .etag = transfer.response().etag};
  }
  release(transfer);
  while (!job->transfers.empty()) release(*job->transfers.front());  // the slower ones
  if (job->fetch.room && !job->facts) {                              // the length is only known now
    Result<ScatterTarget> room = job->fetch.room(out.facts);
    if (!room) return answer(job, failure(std::move(room.error())));
    out.got = std::min<uint64_t>(room->size(), out.text.size());
    room->write(0, {reinterpret_cast<const uint8_t*>(out.text.data()), size_t(out.got)});
  }
  answer(job, std::move(out));
}

void RangeClient::Loop::again(const Job& job, const std::string& why, std::optional<double> asked) {
  const RemoteOptions& options = *job->options;
  const double chance = std::uniform_real_distribution<>()(random);
  const double pause = job->backoff.next(chance, asked);
  const double time = now();
  if (job->tries > options.retries || time + pause - job->begun > options.retry_seconds) {
    return answer(job, failure(request_error(job->fetch.path,
                                             why + ", after " + std::to_string(job->tries) +
                                                 " attempts in " + seconds_text(time - job->begun),
                                             "check the URL, the network and the server")));
  }
  pauses.emplace(time + pause, job);
}

void RangeClient::Loop::redirect(const Job& job, const HttpRequest& from,
                                 const HttpResponse& response) {
  Result<HttpRequest> moved = redirected(from, response.location, job->options->any_redirect);
  if (moved && ++job->redirects > kMaxRedirects) moved = Error{.what = "in a circle"};
  if (!moved) {
    return answer(
        job, failure(request_error(job->fetch.path, "the server redirects " + moved.error().what,
                                   "open that URL directly, or allow it: "
                                   "hr.remote.configure(redirects=\"any\")")));
  }
  if (job->fetch.redirected) {
    std::string version = job->fetch.redirected(job->fetch.path, response, moved->url);
    if (!version.empty()) moved->version = std::move(version);
  }
  job->moved = std::move(*moved);
  --job->tries;
  server_of(*job).waiting.push_front(job);
}

void RangeClient::Loop::renew(const Job& job, FetchResult refused, const HttpResponse& response,
                              std::string code) {
  if (job->moved && !job->renewed) {  // signed URLs of a redirect expire
    job->renewed = true;
    job->moved.reset();
    server_of(*job).waiting.push_front(job);
    return;
  }
  if (!job->fetch.renew || job->renewed) return answer(job, std::move(refused));
  job->renewed = true;
  // Renewing credentials may take a request to a server or a call to Python; the job comes back as
  // an arrival.
  auto held = std::make_shared<FetchResult>(std::move(refused));  // shared: with a copyable call
  renewals.call([this, job, held, response, code = std::move(code)] {
    bool renewed = false;
    try {
      renewed = job->fetch.renew(job->fetch.path, response, code);
    } catch (const std::exception& failed) {
      held->result = request_error(job->fetch.path, failed.what());
    }
    put({.job = job, .renewed = renewed, .refused = std::move(*held)});
  });
}

void RangeClient::Loop::answer(const Job& job, FetchResult result) {
  const auto done = std::move(job->fetch.done);
  result.options = job->options;
  if (done) done(std::move(result));
}

void RangeClient::Loop::find_slow_requests() {
  const double time = now();
  if (active.empty() || time < next_tick) return;
  next_tick = time + kTick;
  std::vector<Transfer*> complete, stalled, slow;
  for (const auto& [transfer, held] : active) {
    const FetchJob& job = transfer->job();
    if (transfer->has_all()) {
      complete.push_back(transfer);
    } else if (transfer->is_stalled(time, job.options->stall_seconds, job.options->least_rate)) {
      stalled.push_back(transfer);
    } else if (job.options->hedge && !job.fetch.upload && !job.copy_waits &&
               job.transfers.back() == transfer &&
               job.transfers.size() < kMaxCopies) {  // the latest transfer
      const Server& server = server_of(job);
      const double after = server.hedges.after(bytes_of(job.fetch));
      if (time - transfer->begun() > after && !server.limit.is_throttled(time)) {
        slow.push_back(transfer);
      }
    }
  }
  for (Transfer* transfer : complete) {
    if (active.contains(transfer)) whole(transfer->shared_job(), *transfer);
  }
  for (Transfer* transfer : stalled) {
    if (!active.contains(transfer)) continue;  // another transfer of its job was complete
    if (transfer->is_refused()) {              // the rest of an error's body does not matter
      finish(*transfer, Curl::kOk);
      continue;
    }
    const Job job = transfer->shared_job();
    const std::string why =
        "no data, or almost none, for " + seconds_text(job->options->stall_seconds);
    release(*transfer);
    job->fresh = true;
    if (job->transfers.empty()) again(job, why, {});
  }
  for (Transfer* transfer : slow) {
    if (!active.contains(transfer)) continue;
    const Job job = transfer->shared_job();
    job->copy_waits = true;
    server_of(*job).slow.push_back(job);
  }
}

void RangeClient::Loop::cancel_unneeded() {
  if (!some_unneeded.exchange(false)) return;
  end([](const Job& job) { return job->fetch.unneeded.stop_requested(); }, kUnneeded);
}

void RangeClient::Loop::end_all() {
  end([](const Job&) { return true; }, "the process is exiting");
  idle.clear();
}

// Ends these jobs with an error. Those that were refused, and wait for new credentials, come back
// first.
void RangeClient::Loop::end(const std::function<bool(const Job&)>& which, const std::string& why) {
  std::vector<Job> ended;
  const auto take = [&](const Job& job) {
    if (!which(job)) return false;
    ended.push_back(job);
    return true;
  };
  for (auto& [name, server] : servers) {
    std::erase_if(server.waiting, take);
    std::erase_if(server.slow, which);  // these jobs are also in progress
  }
  std::erase_if(pauses, [&](const auto& pause) { return take(pause.second); });
  std::vector<Transfer*> transfers;
  for (const auto& [transfer, held] : active) {
    if (which(transfer->shared_job())) transfers.push_back(transfer);
  }
  for (Transfer* transfer : transfers) {
    const Job job = transfer->shared_job();
    release(*transfer);
    if (job->transfers.empty()) ended.push_back(job);  // its last one
  }
  for (const Job& job : ended) answer(job, failure(request_error(job->fetch.path, why)));
}

RangeClient::RangeClient() : loop_(std::make_unique<Loop>()) {}

RangeClient::~RangeClient() = default;

RangeClient& RangeClient::of_process() {
  RangeClient& client = of_this_process<RangeClient>();
  // Before the libraries used by transfers shut down: these registered their exit handlers when
  // libcurl was opened.
  static const int registered = std::atexit([] { of_this_process<RangeClient>().loop_->stop(); });
  (void)registered;
  return client;
}

void RangeClient::submit(Fetch fetch) { loop_->submit(std::move(fetch)); }

std::unique_ptr<PendingFetch> RangeClient::submitted(Fetch fetch) {
  std::unique_ptr<PendingFetch> pending(new PendingFetch(fetch.path, fetch.range.first));
  fetch.unneeded = pending->unneeded_.get_token();
  fetch.done = [state = pending->state_](FetchResult result) {
    MutexLock lock(state->mutex);
    state->result = std::move(result);
    state->changed.notify_all();
  };
  submit(std::move(fetch));
  return pending;
}

FetchResult RangeClient::fetch(Fetch fetch) { return submitted(std::move(fetch))->wait(); }

PendingFetch::~PendingFetch() {
  bool is_over = false;
  {
    MutexLock lock(state_->mutex);
    is_over = state_->result.has_value();
  }
  if (!is_over) (void)unneeded_.request_stop();
}

FetchResult PendingFetch::wait() {
  {
    MutexLock lock(state_->mutex);
    while (!state_->result && !ReadWait::is_over()) {
      ReadWait::wait(state_->changed, state_->mutex);
    }
    if (state_->result) return std::move(*state_->result);
  }
  (void)unneeded_.request_stop();
  return failure(ReadWait::error(path_, static_cast<int64_t>(first_)));
}

}  // namespace headrace
