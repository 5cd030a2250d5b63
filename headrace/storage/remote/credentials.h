// SPDX-License-Identifier: Apache-2.0
// Authorization for requests to a cloud: keys or a token from the environment, otherwise from a
// provider (in Python, which knows profiles, roles and instance metadata). Cached until shortly
// before they expire. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/mutex.h"
#include "headrace/storage/remote/sigv4.h"

namespace headrace {

struct ProvidedKeys {
  SigningKeys keys;
  double expires = 0;  // seconds since 1970; 0: never
};

// Called if the environment has no keys; returns empty if it has none either. It may wait and may
// throw, and is called from any thread, but only one at a time.
using KeyProvider = std::function<std::optional<ProvidedKeys>()>;
// `cloud`: the scheme, such as "s3".
void set_key_provider(std::string_view cloud, KeyProvider provider);

// The first of these variables that is not empty.
std::string variable_of(std::initializer_list<const char*> names);

class Credentials {
 public:
  using Environment = std::optional<SigningKeys> (*)();
  Credentials(std::string_view cloud, Environment environment)
      : cloud_(cloud), environment_(environment) {}

  // The current credentials; never waits. Empty: requests are not authorized.
  std::optional<SigningKeys> known() const EXCLUDES_LOCK(mutex_);
  // Reads the environment on the first call or if `looks`, and calls the provider if the
  // environment has no keys, or the provider's keys expire within five minutes. Throws the
  // provider's exceptions.
  void prepare(bool looks) EXCLUDES_LOCK(mutex_);
  // After a rejection: gets the credentials again. Returns whether they differ now.
  bool renew(const std::optional<SigningKeys>& refused) EXCLUDES_LOCK(mutex_);

 private:
  void ask_provider() EXCLUDES_LOCK(mutex_);

  const std::string cloud_;
  const Environment environment_;
  mutable Mutex mutex_;
  std::optional<SigningKeys> from_environment_ GUARDED_BY(mutex_);
  std::optional<ProvidedKeys> provided_ GUARDED_BY(mutex_);
  bool asked_environment_ GUARDED_BY(mutex_) = false, asking_ GUARDED_BY(mutex_) = false;
  uint64_t asked_provider_ GUARDED_BY(mutex_) = 0;  // number of the provider that was called last
  Condition changed_;
};

}  // namespace headrace
