// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/range_client.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/base/longer_test_limits.h"
#include "headrace/storage/read_deadline.h"
#include "headrace/storage/remote/loopback_server_test.h"

namespace headrace {
namespace {

constexpr uint64_t kBytes = 3'000'000;

// No request is given up or sent a second time because the machine is busy.
RemoteOptions patient_options() {
  RemoteOptions options;
  options.stall_seconds = 600;
  options.hedge = false;
  return options;
}

// Quick to try again, while a test lasts.
class QuickOptions {
 public:
  explicit QuickOptions(RemoteOptions options = patient_options()) : before_(*remote_options()) {
    options.first_pause = 0.001;
    options.longest_pause = 0.01;
    set_remote_options(options);
  }
  ~QuickOptions() { set_remote_options(before_); }

 private:
  const RemoteOptions before_;
};

Fetch fetch_of(const std::string& url, WantedRange range, std::vector<uint8_t>& out) {
  Fetch fetch;
  fetch.path = url;
  fetch.server = url;
  fetch.request = [url](const std::string&, const HttpCall&) { return HttpRequest{.url = url}; };
  fetch.range = range;
  fetch.room = [&out, range](const ObjectFacts& facts) -> Result<ScatterTarget> {
    out.resize(std::min(*facts.size - range.first, range.bytes));
    return ScatterTarget(out);
  };
  return fetch;
}

bool is_right(const std::vector<uint8_t>& bytes, uint64_t first) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != byte_at(first + i)) return false;
  }
  return true;
}

// Reads many ranges at once from several threads; returns how many came, each byte compared.
int read_ranges(RangeClient& client, const std::string& url, int threads, int each,
                uint64_t bytes) {
  std::atomic<int> right{0}, left{threads * each};
  std::vector<std::vector<uint8_t>> places(static_cast<size_t>(threads * each));
  std::vector<std::thread> callers;
  for (int thread = 0; thread < threads; ++thread) {
    callers.emplace_back([&, thread] {
      for (int i = 0; i < each; ++i) {
        const auto number = static_cast<size_t>(thread * each + i);
        const uint64_t first = number * 7919 % (kBytes - bytes);
        Fetch fetch = fetch_of(url, {.first = first, .bytes = bytes}, places[number]);
        fetch.done = [&, number, first](FetchResult result) {
          right += result.result && result.got == bytes && is_right(places[number], first);
          --left;
        };
        client.submit(std::move(fetch));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  while (left > 0) std::this_thread::yield();
  return right;
}

TEST(RangeClient, ReadsManyRangesAtOnceFromManyThreads) {
  const QuickOptions options;
  LoopbackServer server(kBytes);
  RangeClient client;
  EXPECT_EQ(read_ranges(client, server.url(), 3, 50, 20'000), 150);
}

TEST(RangeClient, ReadsAWholeObjectWithoutARange) {
  const QuickOptions options;
  LoopbackServer server(kBytes, [](int) { return LoopbackFault{.status = 200}; });
  RangeClient client;
  std::vector<uint8_t> out;
  const FetchResult result = client.fetch(fetch_of(server.url(), {}, out));
  ASSERT_TRUE(result.result);
  EXPECT_EQ(out.size(), kBytes);
  EXPECT_TRUE(is_right(out, 0));
}

TEST(RangeClient, RetriesFromTheFirstMissingByte) {
  const QuickOptions options;
  LoopbackServer server(kBytes, [](int number) {
    const LoopbackFault faults[] = {{.status = 503},
                                    {.cut = 1000},
                                    {.status = 429, .headers = "Retry-After: 0\r\n"},
                                    {.cut = 5000},
                                    {.status = 500}};
    return number < 5 ? faults[number] : LoopbackFault{};
  });
  RangeClient client;
  std::vector<uint8_t> out;
  const FetchResult result =
      client.fetch(fetch_of(server.url(), {.first = 500, .bytes = 100'000}, out));
  ASSERT_TRUE(result.result) << result.result.error().message();
  EXPECT_TRUE(is_right(out, 500));
  EXPECT_EQ(server.requests(), 6);
}

TEST(RangeClient, AnotherVersionInTheMiddleOfABodyIsNeverJoined) {
  const QuickOptions options;
  LoopbackServer server(kBytes, [](int number) {
    return number == 0 ? LoopbackFault{.cut = 1000} : LoopbackFault{.headers = "ETag: \"two\"\r\n"};
  });
  RangeClient client;
  std::vector<uint8_t> out;
  const FetchResult result =
      client.fetch(fetch_of(server.url(), {.first = 0, .bytes = 100'000}, out));
  EXPECT_TRUE(result.changed);
}

TEST(RangeClient, GivesUpAfterItsRetries) {
  RemoteOptions few = patient_options();
  few.retries = 2;
  const QuickOptions options(few);
  LoopbackServer server(kBytes, [](int) { return LoopbackFault{.status = 500}; });
  RangeClient client;
  std::vector<uint8_t> out;
  const FetchResult result = client.fetch(fetch_of(server.url(), {.first = 0, .bytes = 10}, out));
  ASSERT_FALSE(result.result);
  EXPECT_EQ(result.result.error().code->id, "HR0221");
  EXPECT_NE(result.result.error().what.find("answered 500, after 3 attempts"), std::string::npos);
  EXPECT_EQ(server.requests(), 3);
}

TEST(RangeClient, AHangingRequestIsAbandonedAndRetried) {
  RemoteOptions impatient = patient_options();
  impatient.stall_seconds = 0.3;
  impatient.retries = 1000;
  const QuickOptions options(impatient);
  LoopbackServer server(kBytes, [](int number) { return LoopbackFault{.hangs = number == 0}; });
  RangeClient client;
  std::vector<uint8_t> out;
  const FetchResult result = client.fetch(fetch_of(server.url(), {.first = 9, .bytes = 10}, out));
  ASSERT_TRUE(result.result);
  EXPECT_TRUE(is_right(out, 9));
}

TEST(RangeClient, ATricklingResponseIsAbandonedAndRetried) {
  EXPECT_TRUE(holds_with_longer_limits({0.2, 2, 20}, [](double stall_seconds) -> std::string {
    RemoteOptions impatient = patient_options();
    impatient.stall_seconds = stall_seconds;
    impatient.least_rate = 10'000;
    const QuickOptions options(impatient);
    LoopbackServer server(kBytes, [](int number) { return LoopbackFault{.drips = number < 2}; });
    RangeClient client;
    std::vector<uint8_t> out;
    const FetchResult result =
        client.fetch(fetch_of(server.url(), {.first = 9, .bytes = 1'000'000}, out));
    if (!result.result) return result.result.error().message();
    if (!is_right(out, 9)) return "other bytes";
    return server.requests() == 3 ? "" : std::to_string(server.requests()) + " requests";
  }));
}

TEST(RangeClient, ASlowRequestIsSentASecondTime) {
  const RemoteOptions before = *remote_options();
  RemoteOptions patient = patient_options();
  patient.hedge_seconds = 0.02;
  set_remote_options(patient);
  std::atomic<bool> hangs{false};
  LoopbackServer server(kBytes, [&](int) { return LoopbackFault{.hangs = hangs.exchange(false)}; });
  RangeClient client;
  EXPECT_EQ(read_ranges(client, server.url(), 1, 60, 1000), 60);
  patient.hedge = true;
  set_remote_options(patient);
  hangs = true;
  EXPECT_EQ(read_ranges(client, server.url(), 1, 1, 1000), 1);  // not after ten minutes
  EXPECT_GE(server.requests(), 62);
  EXPECT_LE(server.requests(), 63) << "a third one, if the second is slow";
  set_remote_options(before);
}

TEST(RangeClient, ASecondRequestWaitsForAConnection) {
  const RemoteOptions before = *remote_options();
  EXPECT_TRUE(holds_with_longer_limits({0.5, 5, 30}, [](double stall_seconds) -> std::string {
    RemoteOptions one = patient_options();
    one.connections = 1;
    one.hedge_seconds = 0.02;
    one.first_pause = 0.001;
    set_remote_options(one);
    std::atomic<bool> hangs{false};
    std::atomic<double> hung{0}, last{0};
    LoopbackServer server(kBytes, [&](int) {
      const bool now_hangs = hangs.exchange(false);
      (now_hangs ? hung : last) = now();
      return LoopbackFault{.hangs = now_hangs};
    });
    RangeClient client;
    if (read_ranges(client, server.url(), 1, 60, 1000) != 60) return "not all were read";
    one.hedge = true;
    one.stall_seconds = stall_seconds;
    set_remote_options(one);
    hangs = true;
    if (read_ranges(client, server.url(), 1, 1, 1000) != 1) return "the last was not read";
    if (last - hung < 0.8 * stall_seconds) return "sent before the first one was given up";
    return server.requests() == 62 ? "" : std::to_string(server.requests()) + " requests";
  }));
  set_remote_options(before);
}

TEST(RangeClient, AnUnsentSecondRequestDoesNotCountAsARetry) {
  const RemoteOptions before = *remote_options();
  EXPECT_TRUE(holds_with_longer_limits({0.5, 5, 30}, [](double stall_seconds) -> std::string {
    RemoteOptions once = patient_options();
    once.retries = 0;
    once.hedge_seconds = 0.02;
    set_remote_options(once);
    std::atomic<bool> hangs{false};
    LoopbackServer server(kBytes,
                          [&](int) { return LoopbackFault{.hangs = hangs.exchange(false)}; });
    RangeClient client;
    if (read_ranges(client, server.url(), 1, 60, 1000) != 60) return "not all were read";
    once.hedge = true;
    once.stall_seconds = stall_seconds;
    set_remote_options(once);
    hangs = true;
    std::vector<uint8_t> out;
    Fetch fetch = fetch_of(server.url(), {.first = 0, .bytes = 1000}, out);
    std::atomic<int> calls{0};
    fetch.request = [&](const std::string&, const HttpCall&) -> Result<HttpRequest> {
      const int call = calls++;  // as many copies as 61 requests may have are not signed
      if (call == 1 || call == 2) return request_error(server.url(), "no credentials");
      return HttpRequest{.url = server.url()};
    };
    if (client.fetch(std::move(fetch)).result) return "another attempt was made";
    if (calls != 3) return std::to_string(calls) + " calls";
    return server.requests() == 61 ? "" : std::to_string(server.requests()) + " requests";
  }));
  set_remote_options(before);
}

TEST(RangeClient, TheSecondRequestMayHangToo) {
  const RemoteOptions before = *remote_options();
  RemoteOptions patient = patient_options();
  patient.hedge_seconds = 0.02;
  set_remote_options(patient);
  std::atomic<int> hangs{0};
  LoopbackServer server(kBytes, [&](int) { return LoopbackFault{.hangs = hangs-- > 0}; });
  RangeClient client;
  EXPECT_EQ(read_ranges(client, server.url(), 1, 120, 1000), 120);
  patient.hedge = true;
  set_remote_options(patient);
  hangs = 2;
  EXPECT_EQ(read_ranges(client, server.url(), 1, 1, 1000), 1);
  EXPECT_EQ(server.requests(), 123);
  set_remote_options(before);
}

TEST(RangeClient, AForkedChildReadsIndependently) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer lets no forked child start a thread";
#endif
  const QuickOptions options;
  LoopbackServer server(kBytes);
  std::vector<uint8_t> out;
  ASSERT_TRUE(RangeClient::of_process()
                  .fetch(fetch_of(server.url(), {.first = 0, .bytes = 100}, out))
                  .result);
  const pid_t child = fork();
  if (child == 0) {
    std::vector<uint8_t> mine;
    const FetchResult result =
        RangeClient::of_process().fetch(fetch_of(server.url(), {.first = 7, .bytes = 100}, mine));
    _exit(result.result && is_right(mine, 7) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// The first requests hang, the next one fails and waits for another attempt, the others wait for a
// connection.
TEST(RangeClient, UnneededRequestsEndAtOnceAndTheOthersGoOn) {
  RemoteOptions few = patient_options();
  few.connections = 4;
  few.retry_seconds = 10'000;
  const QuickOptions options(few);
  LoopbackServer hanging(kBytes, [](int) { return LoopbackFault{.hangs = true}; });
  LoopbackServer failing(kBytes, [](int number) {
    return number == 0 ? LoopbackFault{.status = 503, .headers = "Retry-After: 5000\r\n"}
                       : LoopbackFault{};
  });
  RangeClient client;
  std::stop_source unneeded;
  std::vector<std::vector<uint8_t>> places(40);
  std::atomic<int> submitted{0}, failed{0};
  const auto submit = [&](const LoopbackServer& server) {
    std::vector<uint8_t>& out = places[static_cast<size_t>(submitted++)];
    Fetch fetch = fetch_of(server.url(), {.first = 0, .bytes = 1000}, out);
    fetch.unneeded = unneeded.get_token();
    fetch.done = [&](const FetchResult& result) { failed += !result.result; };
    client.submit(std::move(fetch));
  };
  submit(failing);
  for (int i = 1; i < 39; ++i) submit(hanging);
  while (failing.requests() < 1 || hanging.requests() < 4) std::this_thread::yield();
  unneeded.request_stop();
  submit(hanging);
  while (failed < submitted) std::this_thread::yield();
  EXPECT_LE(hanging.requests(), 4);
  std::vector<uint8_t> out;
  EXPECT_TRUE(client.fetch(fetch_of(failing.url(), {.first = 5, .bytes = 1000}, out)).result);
  EXPECT_TRUE(is_right(out, 5));
  EXPECT_EQ(failing.requests(), 2);
}

// Bodies without a length.

TEST(RangeClient, AnUnsizedBodyIsReadToItsEnd) {
  const QuickOptions options;
  LoopbackServer server(kBytes, [](int) { return LoopbackFault{.status = 200, .unsized = true}; });
  RangeClient client;
  std::vector<uint8_t> out;
  ASSERT_TRUE(client.fetch(fetch_of(server.url(), {}, out)).result);
  EXPECT_EQ(out.size(), kBytes);
  EXPECT_TRUE(is_right(out, 0));
  Fetch look = fetch_of(server.url(), {.first = 0, .bytes = 4096}, out);
  look.looks = true;
  const FetchResult result = client.fetch(std::move(look));
  ASSERT_TRUE(result.result);
  EXPECT_EQ(result.facts.size, kBytes);
  EXPECT_EQ(out.size(), 4096u);
  EXPECT_TRUE(is_right(out, 0));
  EXPECT_EQ(result.text.size(), 4096u) << "the rest is counted, not kept";
}

TEST(RangeClient, AnEndlessBodyIsAnErrorWithTheLimit) {
  const QuickOptions options;
  LoopbackServer server(kBytes, [](int) { return LoopbackFault{.status = 200, .endless = true}; });
  RangeClient client;
  std::vector<uint8_t> out;
  for (const bool looks : {true, false}) {
    Fetch fetch =
        fetch_of(server.url(), looks ? WantedRange{.first = 0, .bytes = 4096} : WantedRange{}, out);
    fetch.looks = looks;
    fetch.max_bytes = 5'000'000;
    const FetchResult result = client.fetch(std::move(fetch));
    ASSERT_FALSE(result.result);
    const Error& error = result.result.error();
    EXPECT_EQ(error.code->id, "HR0206");
    EXPECT_NE(error.what.find("more than 5000000 bytes"), std::string::npos) << error.what;
    EXPECT_NE(error.hint.find("Content-Length"), std::string::npos) << error.hint;
  }
  EXPECT_EQ(server.requests(), 2) << "it is not asked for again";
}

TEST(RangeClient, TheEndlessBodyOfAnErrorIsNotReadToItsEnd) {
  const QuickOptions options;
  LoopbackServer server(kBytes, [](int) { return LoopbackFault{.status = 404, .endless = true}; });
  RangeClient client;
  std::vector<uint8_t> out;
  const FetchResult result = client.fetch(fetch_of(server.url(), {.first = 0, .bytes = 9}, out));
  ASSERT_TRUE(result.result);
  EXPECT_FALSE(result.found);
}

TEST(RangeClient, AnErrorWhoseBodyDoesNotEndIsThatError) {
  RemoteOptions impatient;
  impatient.stall_seconds = 0.2;
  impatient.retries = 1;
  const QuickOptions options(impatient);
  LoopbackServer server(kBytes, [](int) { return LoopbackFault{.status = 404, .unended = true}; });
  RangeClient client;
  std::vector<uint8_t> out;
  const FetchResult result = client.fetch(fetch_of(server.url(), {.first = 0, .bytes = 9}, out));
  ASSERT_TRUE(result.result) << result.result.error().message();
  EXPECT_FALSE(result.found);
}

TEST(RangeClient, ARangeIsCompleteOnceItsBytesAreThere) {
  RemoteOptions patient;
  patient.stall_seconds = 600;
  patient.hedge = false;
  const QuickOptions options(patient);
  LoopbackServer server(kBytes, [](int) { return LoopbackFault{.unended = true}; });
  RangeClient client;
  for (const bool looks : {true, false}) {
    std::vector<uint8_t> out;
    Fetch fetch = fetch_of(server.url(), {.first = 0, .bytes = 1000}, out);
    fetch.looks = looks;
    const FetchResult result = client.fetch(std::move(fetch));
    ASSERT_TRUE(result.result) << result.result.error().message();
    EXPECT_EQ(result.got, 1000u);
    EXPECT_TRUE(is_right(out, 0));
  }
  EXPECT_EQ(server.requests(), 2);
  while (server.aborted() < 2) std::this_thread::yield();
}

TEST(RangeClient, MoreBytesThanARangeHasAreNeverDelivered) {
  const QuickOptions options;
  LoopbackServer server(kBytes, [](int) { return LoopbackFault{.endless = true}; });
  RangeClient client;
  std::vector<uint8_t> out;
  const FetchResult result = client.fetch(fetch_of(server.url(), {.first = 0, .bytes = 1000}, out));
  if (result.result) {  // what is too much arrived later
    EXPECT_TRUE(is_right(out, 0));
  } else {
    EXPECT_EQ(result.result.error().code->id, "HR0223");
  }
  EXPECT_EQ(server.requests(), 1);
}

// Canceled requests.

TEST(RangeClient, ADroppedHandleCancelsItsRequestAndThoseThatWait) {
  RemoteOptions two;
  two.connections = 2;
  two.stall_seconds = 600;
  two.hedge = false;
  const QuickOptions options(two);
  std::atomic<bool> hangs{true};
  LoopbackServer server(kBytes, [&](int) { return LoopbackFault{.hangs = hangs}; });
  RangeClient client;
  std::vector<std::vector<uint8_t>> places(10);
  std::vector<std::unique_ptr<PendingFetch>> pending;
  for (std::vector<uint8_t>& out : places) {
    pending.push_back(client.submitted(fetch_of(server.url(), {.first = 0, .bytes = 9}, out)));
  }
  while (server.requests() < 2) std::this_thread::yield();
  pending.clear();
  while (server.aborted() < 2) std::this_thread::yield();
  hangs = false;
  std::vector<uint8_t> out;
  EXPECT_TRUE(client.fetch(fetch_of(server.url(), {.first = 7, .bytes = 1000}, out)).result);
  EXPECT_TRUE(is_right(out, 7));
  EXPECT_EQ(server.requests(), 3) << "those that waited were not sent";
}

// While its credentials are renewed, the only connection is given to another request.
TEST(RangeClient, ARequestThatIsCanceledWhileItIsRenewedDoesNotWaitForAConnection) {
  RemoteOptions one = patient_options();
  one.connections = 1;
  const QuickOptions options(one);
  LoopbackServer server(kBytes, [](int number) {
    return number == 0 ? LoopbackFault{.status = 401} : LoopbackFault{.hangs = true};
  });
  RangeClient client;
  std::vector<uint8_t> out, other;
  std::unique_ptr<PendingFetch> hanging;
  std::stop_source unneeded;
  std::atomic<bool> ended{false};
  Fetch fetch = fetch_of(server.url(), {.first = 0, .bytes = 9}, out);
  fetch.unneeded = unneeded.get_token();
  fetch.renew = [&](const std::string&, const HttpResponse&, std::string_view) {
    (void)unneeded.request_stop();
    hanging = client.submitted(fetch_of(server.url(), {.first = 0, .bytes = 9}, other));
    while (server.requests() < 2) std::this_thread::yield();
    return true;
  };
  fetch.done = [&](const FetchResult& result) { ended = !result.result; };
  client.submit(std::move(fetch));
  while (!ended) std::this_thread::yield();
  EXPECT_EQ(server.requests(), 2);
}

TEST(RangeClient, ARequestIsCanceledAtItsDeadline) {
  RemoteOptions patient;
  patient.stall_seconds = 600;
  patient.hedge = false;
  const QuickOptions options(patient);
  LoopbackServer server(kBytes, [](int) { return LoopbackFault{.hangs = true}; });
  RangeClient client;
  std::vector<uint8_t> out;
  const ReadDeadline deadline(0.05);
  const FetchResult result = client.fetch(fetch_of(server.url(), {.first = 3, .bytes = 9}, out));
  ASSERT_FALSE(result.result);
  EXPECT_EQ(result.result.error().code->id, "HR0228");
  EXPECT_EQ(result.result.error().where.offset, 3);
  while (server.requests() < 1 || server.aborted() < 1) std::this_thread::yield();
}

TEST(RangeClient, BothTransfersOfACanceledRequestEnd) {
  const RemoteOptions before = *remote_options();
  RemoteOptions patient;
  patient.stall_seconds = 600;
  patient.hedge_seconds = 0.02;
  patient.hedge = false;
  set_remote_options(patient);
  std::atomic<bool> hangs{false};
  LoopbackServer server(kBytes, [&](int) { return LoopbackFault{.hangs = hangs}; });
  RangeClient client;
  EXPECT_EQ(read_ranges(client, server.url(), 1, 60, 1000), 60);
  patient.hedge = true;
  set_remote_options(patient);
  hangs = true;
  std::vector<uint8_t> out;
  auto pending = client.submitted(fetch_of(server.url(), {.first = 0, .bytes = 1000}, out));
  while (server.requests() < 62) std::this_thread::yield();
  pending.reset();
  while (server.aborted() < server.requests() - 60) std::this_thread::yield();
  set_remote_options(before);
}

TEST(RangeClient, NoRequestIsSentASecondTimeAfterThrottling) {
  const RemoteOptions before = *remote_options();
  RemoteOptions patient;
  patient.stall_seconds = 600;
  patient.hedge_seconds = 0.02;
  patient.first_pause = 0.001;
  patient.hedge = false;
  set_remote_options(patient);
  std::atomic<bool> throttles{false}, hangs{false};
  LoopbackServer server(kBytes, [&](int) {
    if (throttles.exchange(false)) return LoopbackFault{.status = 503};
    return LoopbackFault{.hangs = hangs};
  });
  RangeClient client;
  EXPECT_EQ(read_ranges(client, server.url(), 1, 60, 1000), 60);
  patient.hedge = true;
  set_remote_options(patient);
  throttles = true;
  EXPECT_EQ(read_ranges(client, server.url(), 1, 1, 1000), 1);
  EXPECT_EQ(server.requests(), 62);
  hangs = true;
  std::vector<uint8_t> out;
  const ReadDeadline deadline(1);  // many times the delay of a second request
  EXPECT_FALSE(client.fetch(fetch_of(server.url(), {.first = 0, .bytes = 1000}, out)).result);
  EXPECT_EQ(server.requests(), 63);
  set_remote_options(before);
}

TEST(RangeClient, EndsRequestsInFlightWhenDestroyed) {
  const QuickOptions options;
  LoopbackServer server(kBytes, [](int) { return LoopbackFault{.hangs = true}; });
  std::atomic<int> ended{0};
  std::vector<uint8_t> out;
  {
    RangeClient client;
    Fetch fetch = fetch_of(server.url(), {.first = 0, .bytes = 10}, out);
    fetch.done = [&](const FetchResult& result) { ended += !result.result; };
    client.submit(std::move(fetch));
  }
  EXPECT_EQ(ended, 1);
}

}  // namespace
}  // namespace headrace
