// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/paths.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "headrace/base/random.h"
#include "headrace/base/text.h"
#include "headrace/storage/storage.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

// "memory://a/b" -> "memory://", "a/b".
std::pair<std::string_view, std::string_view> divided(std::string_view path) {
  const std::string_view scheme = scheme_of(path);
  const size_t prefix = scheme.empty() ? 0 : scheme.size() + 3;
  return {path.substr(0, prefix), path.substr(prefix)};
}

// Parameters of S3, Google, Azure (a SAS) and CloudFront.
constexpr std::string_view kOfSignatures[] = {"awsaccesskeyid",
                                              "expires",
                                              "googleaccessid",
                                              "key-pair-id",
                                              "policy",
                                              "se",
                                              "sig",
                                              "signature",
                                              "sip",
                                              "ske",
                                              "skoid",
                                              "sks",
                                              "skt",
                                              "sktid",
                                              "skv",
                                              "sp",
                                              "spr",
                                              "sr",
                                              "st",
                                              "token",
                                              "sv"};

bool is_of_signature(std::string_view name) {
  const std::string lower = lower_case(name);
  return lower.starts_with("x-amz-") || lower.starts_with("x-goog-") ||
         std::ranges::find(kOfSignatures, lower) != std::end(kOfSignatures);
}

}  // namespace

std::string normal_path(std::string_view path) {
  const auto [prefix, whole] = divided(path);
  std::string_view rest = whole, query;
  if (is_web_path(path)) {  // passed to the server unchanged, including "//" and ".."
    rest = whole.substr(0, whole.find('?'));
    query = whole.substr(rest.size());
  }
  return std::string(prefix) + fs::path(rest).lexically_normal().string() + std::string(query);
}

bool is_web_path(std::string_view path) {
  const std::string_view scheme = scheme_of(path);
  return scheme == "https" || scheme == "http";
}

std::string stable_path(std::string_view path) {
  if (!is_web_path(path)) return std::string(path);
  const auto [prefix, whole] = divided(path);
  const std::string_view rest = whole.substr(0, whole.find_first_of("?#"));
  const size_t at = rest.substr(0, rest.find('/')).rfind('@');
  std::string out(prefix);
  out += at == std::string_view::npos ? rest : rest.substr(at + 1);
  std::string_view query = whole.substr(rest.size());
  query = query.substr(0, query.find('#'));
  std::string lasting;
  while (!query.empty()) {
    query.remove_prefix(1);
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(part.size());
    if (!is_of_signature(part.substr(0, part.find('=')))) (lasting += part) += '&';
  }
  if (!lasting.empty()) out += "?" + std::to_string(hash_name(lasting));
  return out;
}

std::string absolute_path(std::string_view path) {
  if (!scheme_of(path).empty()) return normal_path(path);
  std::error_code failed;
  const fs::path whole = fs::absolute(fs::path(path), failed);
  return failed ? std::string(path) : whole.lexically_normal().string();
}

bool is_relative_path(std::string_view path) {
  return scheme_of(path).empty() && !path.starts_with('/');
}

std::string parent_path(std::string_view path) {
  const auto [prefix, rest] = divided(path);
  const std::string above = fs::path(rest).parent_path().string();
  return above.empty() ? above : std::string(prefix) + above;
}

std::string_view last_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view stem_of(std::string_view path) {
  const std::string_view name = last_name(path);
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? name : name.substr(0, dot);
}

std::string current_folder() {
  std::error_code ignored;
  return fs::current_path(ignored).string();
}

}  // namespace headrace
