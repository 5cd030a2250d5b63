// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/credentials.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/per_process.h"

namespace headrace {
namespace {

const ErrorCode kExpired{
    "HR0233", ErrorKind::kStorage, "credentials have expired",
    "The credentials from a function or a cloud's library have expired. In the five minutes "
    "before, it was called every ten seconds, but provided no new credentials. Log in again, or "
    "check the function given to hr.remote.configure(credentials=...): its \"expires\" is in "
    "seconds since 1970."};

constexpr double kBeforeExpiry = 300, kBetweenCalls = 10;  // seconds

struct Provider {
  KeyProvider provider;
  uint64_t number = 1;
};

struct Providers {
  Mutex mutex;
  std::map<std::string, Provider, std::less<>> by_cloud GUARDED_BY(mutex);
};

Providers& providers() {
  static Providers* const all = new Providers;  // outlives all reads at exit
  return *all;
}

Mutex& mutex_of_providers() { return providers().mutex; }

const int providers_over_fork = free_over_fork<mutex_of_providers>();

Provider provider_now(std::string_view cloud) {
  Providers& all = providers();
  MutexLock lock(all.mutex);
  const auto found = all.by_cloud.find(cloud);
  return found == all.by_cloud.end() ? Provider() : found->second;
}

}  // namespace

void set_key_provider(std::string_view cloud, KeyProvider provider) {
  Providers& all = providers();
  MutexLock lock(all.mutex);
  Provider& one = all.by_cloud.try_emplace(std::string(cloud)).first->second;
  one.provider.swap(provider);  // the old one is destroyed after the lock is released
  ++one.number;
}

std::string variable_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name); value && *value) return value;
  }
  return {};
}

std::optional<SigningKeys> Credentials::known() const {
  MutexLock lock(mutex_);
  if (from_environment_) return from_environment_;
  return provided_ ? std::optional(provided_->keys) : std::nullopt;
}

bool Credentials::expires_by(double time) const {
  return provided_ && provided_->expires > 0 && provided_->expires <= time;
}

void Credentials::refuse_expired() const {
  const double time = seconds();
  if (failure_.empty() || !expires_by(time)) return;
  const auto age = static_cast<int64_t>(time - provided_->expires);
  raise(kExpired,
        "the credentials of " + cloud_ + ":// expired " + std::to_string(age) + " s ago, and " +
            failure_,
        "log in again, or check the function given as credentials= and this machine's clock");
}

bool Credentials::must_ask(bool looks, uint64_t provider) {
  MutexLock lock(mutex_);
  if (looks || !asked_environment_) {
    from_environment_ = environment_();
    asked_environment_ = true;
  }
  if (from_environment_) return false;
  if (asked_provider_ != provider) return true;
  const double time = seconds();
  if (!expires_by(time + kBeforeExpiry)) return false;
  const bool was_just_asked = std::abs(time - asked_at_) < kBetweenCalls;
  if (!expires_by(time)) return !asking_ && !was_just_asked;
  if (!asking_ && was_just_asked) refuse_expired();
  return true;
}

void Credentials::prepare(bool looks) {
  const uint64_t provider = provider_now(cloud_).number;
  if (!must_ask(looks, provider)) return;
  const std::exception_ptr failed = ask_provider();
  MutexLock lock(mutex_);
  if (asked_provider_ == provider) return refuse_expired();
  if (failed) std::rethrow_exception(failed);
  if (!failure_.empty()) throw std::runtime_error(failure_);  // in another thread's call
}

std::exception_ptr Credentials::ask_provider() {
  {
    MutexLock lock(mutex_);
    if (asking_) {
      while (asking_) changed_.wait(mutex_);
      return {};
    }
    asking_ = true;
  }
  struct Ended {
    Credentials& credentials;
    ~Ended() {
      MutexLock lock(credentials.mutex_);
      credentials.asking_ = false;
      credentials.changed_.notify_all();
    }
  } ended{*this};
  const auto [provider, number] = provider_now(cloud_);
  std::optional<ProvidedKeys> provided;
  std::exception_ptr failed;
  std::string why;
  try {
    if (provider) provided = provider();
  } catch (const std::exception& raised) {
    failed = std::current_exception();
    why = std::string("their provider failed: ") + raised.what();
  }
  MutexLock lock(mutex_);
  asked_at_ = seconds();
  failure_ = std::move(why);
  if (failed) return failed;
  // Without new keys, the last ones are used until they expire.
  const bool keeps = !provided && provided_ && asked_provider_ == number;
  if (!keeps) provided_ = std::move(provided);
  asked_provider_ = number;
  if (keeps) {
    failure_ = "their provider has no others";
  } else if (expires_by(asked_at_)) {
    failure_ = "their provider returned no later ones";
  }
  return {};
}

bool Credentials::renew(const std::optional<SigningKeys>& refused) {
  bool other = false;
  {
    MutexLock lock(mutex_);
    from_environment_ = environment_();
    asked_environment_ = true;
    if (from_environment_) return from_environment_ != refused;
    other = provided_ && provided_->keys != refused;  // another request was faster
  }
  if (other) return true;
  if (const std::exception_ptr failed = ask_provider()) std::rethrow_exception(failed);
  const std::optional<SigningKeys> keys = known();
  return keys && keys != refused;
}

}  // namespace headrace
