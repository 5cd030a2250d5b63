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

Sha256 Signer::derived(const std::string& secret, const std::string& day,
                       const std::string& region) {
  MutexLock lock(mutex_);
  for (const Derived& kept : kept_) {
    if (kept.secret == secret && kept.day == day && kept.region == region) return kept.key;
  }
  Sha256 key = hmac_sha256(bytes_of(std::string(dialect_.name) + secret), day);
  for (const std::string_view step : {std::string_view(region), dialect_.service, dialect_.end}) {
    key = hmac_sha256(key, step);
  }
  if (kept_.size() == kMostKept) kept_.erase(kept_.begin());
  kept_.push_back({secret, day, region, key});
  return key;
}

std::vector<std::string> Signer::headers(const Url& url, const SigningKeys& keys,
                                         const std::string& region, int64_t time,
                                         const SignedParts& parts) {
  const std::string stamp = time_text(time), day = stamp.substr(0, 8);
  const std::string content =
      parts.body.empty() ? std::string(kEmptyBody) : hex(sha256(parts.body));
  const std::string prefix(dialect_.header_prefix);
  std::vector<std::pair<std::string, std::string>> sent = parts.headers;
  sent.emplace_back(prefix + "content-sha256", content);
  sent.emplace_back(prefix + "date", stamp);
  if (!keys.token.empty()) sent.emplace_back(prefix + "security-token", keys.token);
  std::vector<std::pair<std::string, std::string>> covered = sent;
  covered.emplace_back("host", url.host);
  std::ranges::sort(covered);
  std::string names, canonical = std::string(parts.method) + "\n" + url.path + "\n" +
                                 canonical_query(url.query) + "\n";
  for (const auto& [name, value] : covered) {
    names.append(names.empty() ? "" : ";").append(name);
    canonical.append(name).append(":").append(value).append("\n");
  }
  canonical.append("\n").append(names).append("\n").append(content);
  const std::string scope =
      day + "/" + region + "/" + std::string(dialect_.service) + "/" + std::string(dialect_.end);
  const std::string algorithm = std::string(dialect_.name) + "-HMAC-SHA256";
  const std::string text = algorithm + "\n" + stamp + "\n" + scope + "\n" + hex(sha256(canonical));
  const Sha256 signature = hmac_sha256(derived(keys.secret, day, region), text);
  std::vector<std::string> out;
  for (const auto& [name, value] : sent) out.push_back(name + ": " + value);
  out.push_back("Authorization: " + algorithm + " Credential=" + keys.key + "/" + scope +
                ", SignedHeaders=" + names + ", Signature=" + hex(signature));
  return out;
}

}  // namespace headrace
