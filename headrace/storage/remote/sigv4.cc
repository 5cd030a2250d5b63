// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/sigv4.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace headrace {
namespace {

// The hash of a body without bytes.
constexpr std::string_view kEmptyBody =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr size_t kMostKept = 16;

std::string time_text(int64_t time) {
  const std::time_t seconds = time;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[24];
  const size_t size = std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return {text, size};
}

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

std::string canonical_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    if (pair.empty()) continue;
    const std::string_view name = pair.substr(0, pair.find('='));
    pairs.emplace_back(name, pair.substr(std::min(name.size() + 1, pair.size())));
  }
  std::ranges::sort(pairs);
  std::string out;
  for (const auto& [name, value] : pairs) {
    out += (out.empty() ? "" : "&") + name + "=" + value;
  }
  return out;
}

Sha256 Signer::derived(const std::string& secret, const std::string& day, const std::string& region,
                       std::string_view service) {
  MutexLock lock(mutex_);
  for (const Derived& kept : kept_) {
    if (kept.secret == secret && kept.day == day && kept.region == region &&
        kept.service == service) {
      return kept.key;
    }
  }
  Sha256 key = hmac_sha256(bytes_of("AWS4" + secret), day);
  for (const std::string_view step :
       {std::string_view(region), service, std::string_view("aws4_request")}) {
    key = hmac_sha256(key, step);
  }
  if (kept_.size() == kMostKept) kept_.erase(kept_.begin());
  kept_.push_back({secret, day, region, std::string(service), key});
  return key;
}

std::vector<std::string> Signer::headers(const Url& url, const SigningKeys& keys,
                                         const std::string& region, int64_t time,
                                         std::string_view service) {
  const std::string stamp = time_text(time), day = stamp.substr(0, 8);
  std::string names = "host;x-amz-content-sha256;x-amz-date";
  std::string canonical = "GET\n" + url.path + "\n" + canonical_query(url.query) +
                          "\nhost:" + url.host + "\nx-amz-content-sha256:";
  canonical.append(kEmptyBody).append("\nx-amz-date:").append(stamp).append("\n");
  if (!keys.token.empty()) {
    canonical.append("x-amz-security-token:").append(keys.token).append("\n");
    names += ";x-amz-security-token";
  }
  canonical.append("\n").append(names).append("\n").append(kEmptyBody);
  const std::string scope = day + "/" + region + "/" + std::string(service) + "/aws4_request";
  const std::string text =
      "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + hex(sha256(canonical));
  const Sha256 signature = hmac_sha256(derived(keys.secret, day, region, service), text);
  std::vector<std::string> out = {
      "x-amz-content-sha256: " + std::string(kEmptyBody), "x-amz-date: " + stamp,
      "Authorization: AWS4-HMAC-SHA256 Credential=" + keys.key + "/" + scope +
          ", SignedHeaders=" + names + ", Signature=" + hex(signature)};
  if (!keys.token.empty()) out.push_back("x-amz-security-token: " + keys.token);
  return out;
}

}  // namespace headrace
