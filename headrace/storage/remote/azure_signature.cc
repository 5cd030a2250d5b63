// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/azure_signature.h"

#include <algorithm>
#include <map>

#include "headrace/base/text.h"
#include "headrace/storage/remote/sha256.h"

namespace headrace {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// "/account/path", then a line per query parameter, unescaped.
std::string canonical_resource(const std::string& account, const Url& url) {
  std::string out = "/" + account + url.path;
  std::map<std::string, std::vector<std::string>> parameters;
  std::string_view rest = url.query;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    const std::string_view name = pair.substr(0, pair.find('='));
    const std::string_view value = pair.substr(std::min(name.size() + 1, pair.size()));
    if (!pair.empty()) parameters[lower_case(unescaped(name))].push_back(unescaped(value));
  }
  for (auto& [name, values] : parameters) {
    std::ranges::sort(values);
    out += "\n" + name + ":";
    for (size_t i = 0; i < values.size(); ++i) out += (i > 0 ? "," : "") + values[i];
  }
  return out;
}

}  // namespace

std::string azure_text_to_sign(const std::string& account, const Url& url, const HttpCall& call,
                               HeaderPairs headers) {
  const std::string length = call.body.empty() ? "" : std::to_string(call.body.size());
  const std::string none_match = call.method == "PUT" ? "*" : "";
  // Method, Content-Encoding, -Language, -Length, -MD5, -Type, Date, If-Modified-Since, If-Match,
  // If-None-Match, If-Unmodified-Since, Range: empty if they are not sent.
  std::string out = std::string(call.method) + "\n\n\n" + length + "\n\n\n\n\n" + call.if_match +
                    "\n" + none_match + "\n\n" + call.range + "\n";
  std::ranges::sort(headers);
  for (const auto& [name, value] : headers) out += name + ":" + value + "\n";
  return out + canonical_resource(account, url);
}

std::string azure_authorization(const std::string& account, std::string_view key, const Url& url,
                                const HttpCall& call, HeaderPairs headers) {
  const std::optional<std::string> secret = bytes_of_base64(key);
  if (!secret) return {};
  const Sha256 signature = hmac_sha256(bytes_from_text(*secret),
                                       azure_text_to_sign(account, url, call, std::move(headers)));
  return "SharedKey " + account + ":" + base64(text_from_bytes(signature));
}

std::string base64(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      out += j <= count ? kBase64[bits >> (18 - 6 * j) & 63] : '=';
    }
  }
  return out;
}

std::optional<std::string> bytes_of_base64(std::string_view text) {
  if (text.size() % 4 != 0) return {};
  std::string out;
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t bits = 0;
    size_t count = 4;
    if (i + 4 == text.size()) count -= text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    for (size_t j = 0; j < 4; ++j) {
      const size_t digit = j < count ? kBase64.find(text[i + j]) : 0;
      if (digit == std::string_view::npos) return {};
      bits = bits << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t j = 0; j + 1 < count; ++j) out += static_cast<char>(bits >> (16 - 8 * j) & 255);
  }
  return out;
}

}  // namespace headrace
