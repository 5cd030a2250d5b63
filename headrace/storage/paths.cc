// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/paths.h"

#include <filesystem>
#include <system_error>
#include <utility>

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

}  // namespace

std::string normal_path(std::string_view path) {
  const auto [prefix, whole] = divided(path);
  std::string_view rest = whole, query;
  if (is_web_path(path)) {  // the server's affair, whatever "//" and ".." are in it
    rest = whole.substr(0, whole.find('?'));
    query = whole.substr(rest.size());
  }
  return std::string(prefix) + fs::path(rest).lexically_normal().string() + std::string(query);
}

bool is_web_path(std::string_view path) {
  const std::string_view scheme = scheme_of(path);
  return scheme == "https" || scheme == "http";
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
