// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/credentials.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <utility>

#include "headrace/base/per_process.h"

namespace headrace {
namespace {

constexpr double kBeforeExpiry = 300;

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

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
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

void Credentials::prepare(bool looks) {
  const uint64_t number = provider_now(cloud_).number;
  {
    MutexLock lock(mutex_);
    if (looks || !asked_environment_) {
      from_environment_ = environment_();
      asked_environment_ = true;
    }
    if (from_environment_) return;
    const bool expires = provided_ && provided_->expires > 0 &&
                         seconds_since_1970() > provided_->expires - kBeforeExpiry;
    const bool asked = asked_provider_ == number;
    if (asked && !expires) return;
    if (asked && asking_) return;  // the old credentials are used until the new ones arrive
  }
  ask_provider();
}

void Credentials::ask_provider() {
  {
    MutexLock lock(mutex_);
    if (asking_) {
      while (asking_) changed_.wait(mutex_);
      return;
    }
    asking_ = true;
  }
  const auto [provider, number] = provider_now(cloud_);
  const auto ended = [&, number = number](std::optional<ProvidedKeys> provided, bool answered) {
    MutexLock lock(mutex_);
    asking_ = false;
    if (answered) {
      provided_ = std::move(provided);
      asked_provider_ = number;
    }
    changed_.notify_all();
  };
  try {
    ended(provider ? provider() : std::nullopt, true);
  } catch (...) {
    ended({}, false);
    throw;
  }
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
  ask_provider();
  const std::optional<SigningKeys> keys = known();
  return keys && keys != refused;
}

}  // namespace headrace
