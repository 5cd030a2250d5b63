// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/cloud.h"

#include <utility>

#include "headrace/storage/remote/remote_options.h"

namespace headrace {
namespace {

const ErrorCode kBadEndpoint{
    "HR0225", ErrorKind::kConfig, "invalid endpoint",
    "The endpoint of a storage is a URL with a scheme, http://127.0.0.1:9000 or "
    "https://storage.example.org, given by an environment variable (AWS_ENDPOINT_URL, "
    "STORAGE_EMULATOR_HOST, AZURE_STORAGE_ENDPOINT, HF_ENDPOINT) or "
    "hr.remote.configure(endpoint=...). Azure's endpoint follows from the account "
    "(AZURE_STORAGE_ACCOUNT_NAME), so one of the two must be given."};

}  // namespace

bool Cloud::is_root(const std::string& path) const {
  return lists() && path.find('/', path.find("://") + 3) == std::string::npos;
}

Result<Url> endpoint_from(std::string text, std::string_view scheme) {
  if (!scheme.empty() && text.find("://") == std::string::npos) {
    text = std::string(scheme) + "://" + text;
  }
  std::optional<Url> url = parse_url(text);
  if (!url || (url->scheme != "http" && url->scheme != "https")) {
    return Error{.code = &kBadEndpoint,
                 .what = "\"" + text + "\" is not the URL of a server",
                 .hint = "write http://HOST:PORT or https://HOST"};
  }
  while (url->path.ends_with('/')) url->path.pop_back();
  return std::move(*url);
}

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
