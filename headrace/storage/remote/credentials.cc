// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/credentials.h"

#include <chrono>
#include <cstdlib>
#include <utility>

#include "headrace/storage/remote/per_process.h"

namespace headrace {
namespace {

constexpr double kBeforeExpiry = 300;

struct Provider {
  Mutex mutex;
  KeyProvider provider GUARDED_BY(mutex);
  uint64_t number GUARDED_BY(mutex) = 1;
};

Provider& provider_of_process() {
  static Provider* const one = new Provider;  // outlives whatever reads at exit
  return *one;
}

Mutex& mutex_of_provider() { return provider_of_process().mutex; }

const int provider_over_fork = free_over_fork<mutex_of_provider>();

std::pair<KeyProvider, uint64_t> provider_now() {
  Provider& one = provider_of_process();
  MutexLock lock(one.mutex);
  return {one.provider, one.number};
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::optional<SigningKeys> keys_of_environment() {
  SigningKeys keys{.key = variable("AWS_ACCESS_KEY_ID"),
                   .secret = variable("AWS_SECRET_ACCESS_KEY"),
                   .token = variable("AWS_SESSION_TOKEN")};
  if (keys.key.empty() || keys.secret.empty()) return {};
  return keys;
}

}  // namespace

void set_key_provider(KeyProvider provider) {
  Provider& one = provider_of_process();
  MutexLock lock(one.mutex);
  one.provider.swap(provider);  // the old one ends without the lock
  ++one.number;
}

std::optional<SigningKeys> Credentials::known() const {
  MutexLock lock(mutex_);
  if (from_environment_) return from_environment_;
  return provided_ ? std::optional(provided_->keys) : std::nullopt;
}

void Credentials::prepare(bool looks) {
  const uint64_t number = provider_now().second;
  {
    MutexLock lock(mutex_);
    if (looks || !asked_environment_) {
      from_environment_ = keys_of_environment();
      asked_environment_ = true;
    }
    if (from_environment_) return;
    const bool expires = provided_ && provided_->expires > 0 &&
                         seconds_since_1970() > provided_->expires - kBeforeExpiry;
    const bool asked = asked_provider_ == number;
    if (asked && !expires) return;
    if (asked && asking_) return;  // the old ones will do until the new ones are there
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
  const auto [provider, number] = provider_now();
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
    from_environment_ = keys_of_environment();
    asked_environment_ = true;
    if (from_environment_) return from_environment_ != refused;
    other = provided_ && provided_->keys != refused;  // another request was here first
  }
  if (other) return true;
  ask_provider();
  const std::optional<SigningKeys> keys = known();
  return keys && keys != refused;
}

}  // namespace headrace
