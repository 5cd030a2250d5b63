// SPDX-License-Identifier: Apache-2.0
// Authorization for requests to a cloud: keys or a token of the environment, else of a provider
// (Python's, which knows profiles, roles and instance metadata). Kept until shortly before they
// expire. Any thread.
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

// Called if the environment has no keys; empty if it has none either. It may wait, is called from
// any thread, one at a time, and may throw.
using KeyProvider = std::function<std::optional<ProvidedKeys>()>;
// `cloud`: its scheme, "s3".
void set_key_provider(std::string_view cloud, KeyProvider provider);

// The first of these variables that is not empty.
std::string variable_of(std::initializer_list<const char*> names);

class Credentials {
 public:
  using Environment = std::optional<SigningKeys> (*)();
  Credentials(std::string_view cloud, Environment environment)
      : cloud_(cloud), environment_(environment) {}

  // The known credentials: never waits. Empty: requests are not authorized.
  std::optional<SigningKeys> known() const EXCLUDES_LOCK(mutex_);
  // Reads the environment if `looks` or for the first time, and asks the provider if that has no
  // keys, or they expire within five minutes. Throws the provider's exceptions.
  void prepare(bool looks) EXCLUDES_LOCK(mutex_);
  // After a rejection: asks again. Returns whether there are other keys now.
  bool renew(const std::optional<SigningKeys>& refused) EXCLUDES_LOCK(mutex_);

 private:
  void ask_provider() EXCLUDES_LOCK(mutex_);

  const std::string cloud_;
  const Environment environment_;
  mutable Mutex mutex_;
  std::optional<SigningKeys> from_environment_ GUARDED_BY(mutex_);
  std::optional<ProvidedKeys> provided_ GUARDED_BY(mutex_);
  bool asked_environment_ GUARDED_BY(mutex_) = false, asking_ GUARDED_BY(mutex_) = false;
  uint64_t asked_provider_ GUARDED_BY(mutex_) = 0;  // which one: each provider has a number
  Condition changed_;
};

}  // namespace headrace
