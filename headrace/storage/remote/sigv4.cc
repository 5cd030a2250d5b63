// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/sigv4.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <initializer_list>
#include <utility>

#include "headrace/base/text.h"

namespace headrace {
namespace {

// The hash of an empty body.
constexpr std::string_view kEmptyBody =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr size_t kMaxKept = 16;

// "20261127T220509Z"
std::array<char, 16> time_text(int64_t time) {
  const std::time_t seconds = time;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 17> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  std::array<char, 16> out;
  std::copy_n(text.begin(), out.size(), out.begin());
  return out;
}

// Concatenates the parts, with a single allocation.
std::string joined_parts(std::initializer_list<std::string_view> parts) {
  size_t bytes = 0;
  for (const std::string_view part : parts) bytes += part.size();
  std::string out;
  out.reserve(bytes);
  for (const std::string_view part : parts) out += part;
  return out;
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

HmacSha256 Signer::derived(const std::string& secret, std::string_view day,
                           const std::string& region) {
  MutexLock lock(mutex_);
  for (const Derived& kept : kept_) {
    if (kept.secret == secret && kept.day == day && kept.region == region) return kept.key;
  }
  Sha256 key = hmac_sha256(bytes_from_text(std::string(dialect_.name) + secret), day);
  for (const std::string_view step : {std::string_view(region), dialect_.service, dialect_.end}) {
    key = hmac_sha256(key, step);
  }
  if (kept_.size() == kMaxKept) kept_.erase(kept_.begin());
  kept_.push_back({secret, std::string(day), region, HmacSha256(key)});
  return kept_.back().key;
}

std::vector<std::string> Signer::headers(const Url& url, const SigningKeys& keys,
                                         const std::string& region, int64_t time,
                                         const SignedParts& parts) {
  const std::array<char, 16> time_stamp = time_text(time);
  const std::string_view stamp(time_stamp.data(), time_stamp.size()), day = stamp.substr(0, 8);
  const std::string hash = parts.body.empty() ? std::string() : hex(sha256(parts.body));
  const std::string_view content = hash.empty() ? kEmptyBody : std::string_view(hash);
  const std::string_view prefix = dialect_.header_prefix;
  const std::string content_name = joined_parts({prefix, "content-sha256"});
  const std::string date_name = joined_parts({prefix, "date"});
  const std::string token_name = joined_parts({prefix, "security-token"});
  using Header = std::pair<std::string_view, std::string_view>;
  std::vector<Header> covered;
  covered.reserve(4 + parts.headers.size());
  for (const auto& [name, value] : parts.headers) covered.emplace_back(name, value);
  covered.emplace_back(content_name, content);
  covered.emplace_back(date_name, stamp);
  if (!keys.token.empty()) covered.emplace_back(token_name, keys.token);
  std::vector<std::string> out;
  out.reserve(covered.size() + 1);
  for (const auto& [name, value] : covered) out.push_back(joined_parts({name, ": ", value}));
  covered.emplace_back("host", url.host);
  std::ranges::sort(covered);
  std::string names, canonical;
  canonical.reserve(512 + url.path.size() + url.query.size() + keys.token.size());
  canonical.append(parts.method).append("\n").append(url.path).append("\n");
  if (!url.query.empty()) canonical += canonical_query(url.query);
  canonical += '\n';
  for (const auto& [name, value] : covered) {
    names.append(names.empty() ? "" : ";").append(name);
    canonical.append(name).append(":").append(value).append("\n");
  }
  canonical.append("\n").append(names).append("\n").append(content);
  const std::string scope =
      joined_parts({day, "/", region, "/", dialect_.service, "/", dialect_.end});
  const std::string text = joined_parts(
      {dialect_.name, "-HMAC-SHA256\n", stamp, "\n", scope, "\n", hex(sha256(canonical))});
  const std::string signature = hex(derived(keys.secret, day, region)(text));
  out.push_back(
      joined_parts({"Authorization: ", dialect_.name, "-HMAC-SHA256 Credential=", keys.key, "/",
                    scope, ", SignedHeaders=", names, ", Signature=", signature}));
  return out;
}

}  // namespace headrace
