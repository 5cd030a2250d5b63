// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/url.h"

#include <algorithm>

#include "headrace/base/text.h"

namespace headrace {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

bool is_unreserved(char c) {
  return (lower_case(c) >= 'a' && lower_case(c) <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = lower_case(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool is_escape(std::string_view text, size_t at) {
  return at + 2 < text.size() && digit_of(text[at + 1]) >= 0 && digit_of(text[at + 2]) >= 0;
}

void add_escape(char c, std::string& out) {
  const auto byte = static_cast<unsigned char>(c);
  out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
}

// Escapes everything that is not allowed in a path or a query.
std::string tidy(std::string_view text, bool is_query) {
  const std::string_view kept = is_query ? "!$&'()*+,;=:@/?" : "!$&'()*+,;=:@/";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_unreserved(c) || kept.find(c) != std::string_view::npos ||
        (c == '%' && is_escape(text, i))) {
      out += c;
    } else {
      add_escape(c, out);
    }
  }
  return out;
}

}  // namespace

std::string Url::text() const {
  return scheme + "://" + host + path + (query.empty() ? "" : "?" + query);
}

std::optional<Url> parse_url(std::string_view text) {
  const size_t colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0) return {};
  Url out;
  out.scheme = lower_case(text.substr(0, colon));
  text.remove_prefix(colon + 3);
  text = text.substr(0, text.find('#'));
  const size_t end = std::min(text.find_first_of("/?"), text.size());
  std::string_view authority = text.substr(0, end);
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    out.user = authority.substr(0, at);
    authority.remove_prefix(at + 1);
  }
  const auto fits = [](char c) {
    return is_unreserved(c) || c == ':' || c == '[' || c == ']' || static_cast<signed char>(c) < 0;
  };
  if (authority.empty() || !std::ranges::all_of(authority, fits)) return {};
  out.host = lower_case(authority);
  std::string_view rest = text.substr(end);
  const size_t question = std::min(rest.find('?'), rest.size());
  out.path = tidy(rest.substr(0, question), false);
  if (out.path.empty()) out.path = "/";
  if (question < rest.size()) out.query = tidy(rest.substr(question + 1), true);
  return out;
}

std::string escaped(std::string_view text, std::string_view keep) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c) || keep.find(c) != std::string_view::npos) {
      out += c;
    } else {
      add_escape(c, out);
    }
  }
  return out;
}

std::string unescaped(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && is_escape(text, i)) {
      out += static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2]));
      i += 2;
    } else {
      out += plus_is_blank && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::optional<Url> resolved(const Url& base, std::string_view location) {
  location = trimmed(location);
  if (location.empty()) return {};
  if (location.starts_with("//")) return parse_url(base.scheme + ":" + std::string(location));
  if (const size_t colon = location.find("://");
      colon != std::string_view::npos && colon < location.find_first_of("/?")) {
    return parse_url(location);
  }
  const std::string root = base.scheme + "://" + base.host;
  if (location.starts_with('/')) return parse_url(root + std::string(location));
  const std::string folder = base.path.substr(0, base.path.rfind('/') + 1);
  return parse_url(root + folder + std::string(location));
}

BucketAndKey bucket_and_key(std::string_view path) {
  if (const size_t colon = path.find("://"); colon != std::string_view::npos) {
    path.remove_prefix(colon + 3);
  }
  const size_t slash = std::min(path.find('/'), path.size());
  BucketAndKey out{.bucket = std::string(path.substr(0, slash)), .key = {}};
  if (slash < path.size()) out.key = path.substr(slash + 1);
  return out;
}

}  // namespace headrace
