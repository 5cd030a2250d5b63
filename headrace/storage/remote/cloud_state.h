// SPDX-License-Identifier: Apache-2.0
// The settings and credentials of a cloud in this process. The environment is read at the first
// request and whenever a dataset is opened. Options (remote_options.h) take precedence.
// Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/mutex.h"
#include "headrace/storage/remote/credentials.h"
#include "headrace/storage/remote/sigv4.h"

namespace headrace {

// From the environment; empty if it is not set.
struct CloudSettings {
  std::string endpoint = {};
  std::string region = {};
  std::string account = {};
  bool operator==(const CloudSettings&) const = default;
};

class CloudState {
 public:
  using Environment = CloudSettings (*)();
  // `cloud`: the scheme, such as "s3".
  CloudState(std::string_view cloud, Environment settings, Credentials::Environment keys)
      : cloud_(cloud), environment_(settings), credentials_(cloud, keys) {}

  // Cloud::prepare().
  void prepare(bool looks) EXCLUDES_LOCK(mutex_);
  // Never waits.
  CloudSettings settings() const EXCLUDES_LOCK(mutex_);
  // Changes whenever the result of settings() may have changed, apart from options.
  uint64_t version() const EXCLUDES_LOCK(mutex_);
  // Empty: requests are not authorized.
  std::optional<SigningKeys> keys() const;
  // Cloud::renew(), if the rejected credentials have expired, or there were no keys.
  bool renew(bool expired);

 private:
  const std::string cloud_;
  const Environment environment_;
  mutable Mutex mutex_;
  bool asked_ GUARDED_BY(mutex_) = false;
  CloudSettings settings_ GUARDED_BY(mutex_);
  uint64_t version_ GUARDED_BY(mutex_) = 0;
  Credentials credentials_;
};

}  // namespace headrace
