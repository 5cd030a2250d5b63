// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/cloud_state.h"

#include <utility>

#include "headrace/storage/remote/remote_options.h"

namespace headrace {

void CloudState::prepare(bool looks) {
  {
    MutexLock lock(mutex_);
    if (!std::exchange(asked_, true) || looks) {
      CloudSettings now = environment_();
      version_ += now != settings_;
      settings_ = std::move(now);
    }
  }
  if (!remote_options()->anonymous) credentials_.prepare(looks);
}

CloudSettings CloudState::settings() const {
  const auto options = remote_options();
  MutexLock lock(mutex_);
  CloudSettings out = settings_;
  if (std::string endpoint = options->endpoint(cloud_); !endpoint.empty()) {
    out.endpoint = std::move(endpoint);
  }
  if (!options->region.empty()) out.region = options->region;
  return out;
}

uint64_t CloudState::version() const {
  MutexLock lock(mutex_);
  return version_;
}

std::optional<SigningKeys> CloudState::keys() const {
  if (remote_options()->anonymous) return {};
  return credentials_.known();
}

bool CloudState::renew(bool expired) {
  if (remote_options()->anonymous) return false;
  const std::optional<SigningKeys> refused = credentials_.known();
  return (expired || !refused) && credentials_.renew(refused);
}

}  // namespace headrace
