// SPDX-License-Identifier: Apache-2.0
// Authorization for requests to a cloud: keys or a token from the environment, otherwise from a
// provider (in Python, which knows profiles, roles and instance metadata). Renewal starts five
// minutes before they expire; if it fails, they remain in use until they expire. Thread-safe.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/mutex.h"
#include "headrace/storage/file_times.h"
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
  using Clock = int64_t (*)();  // nanoseconds since 1970
  Credentials(std::string_view cloud, Environment environment, Clock clock = now_ns)
      : cloud_(cloud), environment_(environment), clock_(clock) {}

  // The current credentials; never waits. Empty: requests are not authorized.
  std::optional<SigningKeys> known() const EXCLUDES_LOCK(mutex_);
  // Reads the environment on the first call or if `looks`. If it has no keys, calls the provider if
  // it has not been called, or if its keys expire within five minutes; then every ten seconds until
  // it returns later ones, in one thread, while the others use the old ones. Throws the provider's
  // exceptions if it has never returned; HR0233 if its keys have expired and it has no others.
  void prepare(bool looks) EXCLUDES_LOCK(mutex_);
  // After a rejection: gets the credentials again. Returns whether they differ now.
  bool renew(const std::optional<SigningKeys>& refused) EXCLUDES_LOCK(mutex_);

 private:
  bool must_ask(bool looks, uint64_t provider) EXCLUDES_LOCK(mutex_);
  // Calls the provider, or waits for a call in progress. Returns its exception.
  std::exception_ptr ask_provider() EXCLUDES_LOCK(mutex_);
  double seconds() const { return 1e-9 * static_cast<double>(clock_()); }
  // Whether the provider's keys have expired at this time, in seconds since 1970.
  bool expires_by(double time) const REQUIRES_LOCK(mutex_);
  // Throws HR0233 if they have expired, and the last call gave no others.
  void refuse_expired() const REQUIRES_LOCK(mutex_);

  const std::string cloud_;
  const Environment environment_;
  const Clock clock_;
  mutable Mutex mutex_;
  std::optional<SigningKeys> from_environment_ GUARDED_BY(mutex_);
  std::optional<ProvidedKeys> provided_ GUARDED_BY(mutex_);
  bool asked_environment_ GUARDED_BY(mutex_) = false, asking_ GUARDED_BY(mutex_) = false;
  uint64_t asked_provider_ GUARDED_BY(mutex_) = 0;  // number of the provider that returned last
  double asked_at_ GUARDED_BY(mutex_) = 0;          // time of its last call
  std::string failure_ GUARDED_BY(mutex_);          // why that gave no valid keys
  Condition changed_;
};

}  // namespace headrace
