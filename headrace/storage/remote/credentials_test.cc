// SPDX-License-Identifier: Apache-2.0
// Keys from a provider are renewed before they expire, and used until then whatever it does.
#include "headrace/storage/remote/credentials.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "headrace/base/error.h"

namespace headrace {
namespace {

constexpr const char* kCloud = "test of credentials";

std::atomic<int64_t> seconds_now;
int64_t test_clock() { return seconds_now * 1'000'000'000; }
std::optional<SigningKeys> empty_environment() { return {}; }

ProvidedKeys keys(const std::string& key, double expires) {
  return {.keys = {.key = key, .secret = "secret"}, .expires = expires};
}

class CredentialsTest : public testing::Test {
 protected:
  CredentialsTest() {
    seconds_now = 1'000'000;
    set_key_provider(kCloud, [this] {
      ++calls;
      return answer();
    });
  }
  ~CredentialsTest() override { set_key_provider(kCloud, {}); }

  // The key for a request that is sent now.
  std::string key_now() {
    credentials.prepare(/*looks=*/false);
    const std::optional<SigningKeys> known = credentials.known();
    return known ? known->key : "anonymous";
  }
  // The error of a request that is sent now.
  std::string error_now() {
    try {
      return "no error, but " + key_now();
    } catch (const Exception& failed) {
      return failed.what();
    } catch (const std::exception& failed) {
      return std::string("not an Exception: ") + failed.what();
    }
  }

  std::atomic<int> calls = 0;
  std::function<std::optional<ProvidedKeys>()> answer = [] { return keys("first", 1'003'600); };
  Credentials credentials{kCloud, empty_environment, test_clock};
};

TEST_F(CredentialsTest, AreRenewedFiveMinutesBeforeTheyExpire) {
  EXPECT_EQ(key_now(), "first");
  seconds_now = 1'003'299;
  EXPECT_EQ(key_now(), "first");
  EXPECT_EQ(calls, 1);
  seconds_now = 1'003'301;
  answer = [] { return keys("second", 1'007'200); };
  EXPECT_EQ(key_now(), "second");
  EXPECT_EQ(key_now(), "second");
  EXPECT_EQ(calls, 2);
}

// The provider raises, returns nothing, or the same keys, as metadata services that cache tokens.
TEST_F(CredentialsTest, AreUsedUntilTheyExpireIfThereAreNoOthersYet) {
  const std::function<std::optional<ProvidedKeys>()> given = answer;
  const std::function<std::optional<ProvidedKeys>()> early[] = {
      []() -> std::optional<ProvidedKeys> { throw std::runtime_error("metadata is down"); },
      [] { return std::optional<ProvidedKeys>(); },
      [] { return keys("first", 1'003'600); },
  };
  const char* const reasons[] = {"metadata is down", "no others", "no later ones"};
  for (int i = 0; i < 3; ++i) {
    Credentials fresh(kCloud, empty_environment, test_clock);
    seconds_now = 1'000'000;
    answer = given;
    fresh.prepare(false);
    answer = early[i];
    calls = 0;
    for (seconds_now = 1'003'301; seconds_now < 1'003'600; ++seconds_now) {
      for (int request = 0; request < 3; ++request) fresh.prepare(request == 0);
      ASSERT_EQ(fresh.known()->key, "first") << i << " at " << seconds_now;
    }
    EXPECT_EQ(calls, 30) << "one each ten seconds";
    for (; seconds_now < 1'003'612; ++seconds_now) {
      std::string error;
      try {
        fresh.prepare(false);
      } catch (const Exception& failed) {
        error = failed.what();
      }
      EXPECT_NE(error.find("HR0233"), error.npos) << error;
      EXPECT_NE(error.find(reasons[i]), error.npos) << error;
    }
    EXPECT_EQ(calls, 32);
    answer = [] { return keys("second", 1'007'200); };
    seconds_now = 1'003'630;
    fresh.prepare(false);
    EXPECT_EQ(fresh.known()->key, "second");
  }
}

TEST_F(CredentialsTest, ThatAreShortLivedAreRenewedAsSoonAsTheyExpire) {
  answer = [] { return keys("for 3 s", static_cast<double>(seconds_now) + 3); };
  for (int i = 0; i < 12; ++i, ++seconds_now) EXPECT_EQ(key_now(), "for 3 s");
  EXPECT_EQ(calls, 4);
}

TEST_F(CredentialsTest, AreRequestedByOneThreadWhileTheOthersUseTheOldOnes) {
  EXPECT_EQ(key_now(), "first");
  seconds_now = 1'003'400;
  std::promise<void> called, finish;
  answer = [&] {
    called.set_value();
    finish.get_future().wait();
    return keys("second", 1'007'200);
  };
  std::thread renews([&] { EXPECT_EQ(key_now(), "second"); });
  called.get_future().wait();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(key_now(), "first");
  seconds_now = 1'003'600;  // now the others have to wait
  std::atomic<int> begun = 0;
  std::vector<std::thread> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back([&] {
      ++begun;
      EXPECT_EQ(key_now(), "second");
    });
  }
  while (begun < 4) std::this_thread::yield();
  finish.set_value();
  renews.join();
  for (std::thread& each : waiting) each.join();
  EXPECT_EQ(calls, 2);
}

TEST_F(CredentialsTest, ThatWereNeverProvidedAreNotReplacedByAnonymousRequests) {
  answer = []() -> std::optional<ProvidedKeys> { throw std::runtime_error("no role"); };
  EXPECT_EQ(error_now(), "not an Exception: no role");
  EXPECT_EQ(error_now(), "not an Exception: no role");
  std::promise<void> called, finish;
  answer = [&, is_over = finish.get_future().share()]() -> std::optional<ProvidedKeys> {
    if (calls == 3) called.set_value();
    is_over.wait();
    throw std::runtime_error("no role");
  };
  std::string errors[2];
  std::thread asks([&] { errors[0] = error_now(); });
  called.get_future().wait();
  std::thread waits([&] { errors[1] = error_now(); });
  finish.set_value();
  asks.join();
  waits.join();
  for (const std::string& error : errors) EXPECT_NE(error.find("no role"), error.npos) << error;
}

TEST_F(CredentialsTest, OfAnotherProviderReplaceTheOldOnes) {
  EXPECT_EQ(key_now(), "first");
  set_key_provider(kCloud, [] { return std::optional<ProvidedKeys>(); });
  EXPECT_EQ(key_now(), "anonymous");
}

TEST_F(CredentialsTest, ThatAServerRefusesAreRequestedAgain) {
  EXPECT_EQ(key_now(), "first");
  const std::optional<SigningKeys> refused = credentials.known();
  answer = [] { return std::optional<ProvidedKeys>(); };
  EXPECT_FALSE(credentials.renew(refused));
  EXPECT_EQ(key_now(), "first") << "and requests do not become anonymous";
  answer = [] { return keys("second", 1'007'200); };
  EXPECT_TRUE(credentials.renew(refused));
  EXPECT_EQ(key_now(), "second");
}

TEST_F(CredentialsTest, OfTheEnvironmentComeFirst) {
  Credentials with(
      kCloud, [] { return std::optional(SigningKeys{.key = "variable", .secret = "secret"}); },
      test_clock);
  with.prepare(false);
  EXPECT_EQ(with.known()->key, "variable");
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace headrace
