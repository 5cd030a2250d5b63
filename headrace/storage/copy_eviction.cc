// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/copy_eviction.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "headrace/base/text.h"
#include "headrace/storage/about_copy.h"
#include "headrace/storage/file_times.h"

namespace headrace {
namespace {

const ErrorCode kNoSize{
    "HR0279", ErrorKind::kConfig, "HEADRACE_CACHE_LIMIT is no size",
    "The environment variable HEADRACE_CACHE_LIMIT says how many bytes the unpacked copies of "
    "packed files may take together in the cache folder, and what it holds is no size. Set it to "
    "bytes or, say, \"200 GB\" or \"64 GiB\"; unset it, and a tenth of the disk is kept free."};

std::optional<uint64_t> bytes_from_text(std::string_view text) {
  text = trimmed(text);
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 18) return {};
  const uint64_t number = std::stoull(std::string(text.substr(0, digits)));
  std::string unit = lower_case(trimmed(text.substr(digits)));
  if (unit.ends_with('b')) unit.pop_back();
  const bool binary = unit.size() == 2 && unit[1] == 'i';
  if (binary) unit.pop_back();
  constexpr std::string_view kUnits = "kmgt";
  if (unit.size() > 1 || (binary && unit.empty())) return {};
  const size_t power = unit.empty() ? 0 : kUnits.find(unit) + 1;
  if (power == 0 && !unit.empty()) return {};
  const double bytes = double(number) * std::pow(binary ? 1024.0 : 1000.0, double(power));
  if (bytes > 9e18) return {};
  return power == 0 ? number : static_cast<uint64_t>(bytes);
}

std::optional<struct stat> regular_file(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return status;
}

// Whether what lies there is a copy by what is kept of it.
bool is_copy(const CacheDirectory& cache, const std::string& name) {
  Buffer bytes;
  if (!cache.read(name + ".about", bytes) || !cache.trusts(name)) return false;
  const std::optional<AboutCopy> about = about_from_bytes(bytes.bytes());
  const std::optional<struct stat> there = regular_file(cache.path_of(name));
  return about && there && about->copy.bytes == static_cast<uint64_t>(there->st_size);
}

}  // namespace

std::string bytes_text(uint64_t bytes) {
  char text[32];
  if (bytes < 10'000'000) {
    std::snprintf(text, sizeof text, "%llu bytes", static_cast<unsigned long long>(bytes));
  } else {
    std::snprintf(text, sizeof text, "%.1f GB", double(bytes) / 1e9);
  }
  return text;
}

Result<std::optional<uint64_t>> cache_limit() {
  const char* const text = std::getenv("HEADRACE_CACHE_LIMIT");
  if (!text || trimmed(text).empty()) return std::optional<uint64_t>();
  const std::optional<uint64_t> bytes = bytes_from_text(text);
  if (bytes) return bytes;
  return Error{.code = &kNoSize,
               .what = "\"" + std::string(text) + "\"",
               .hint = "set it to bytes, or to a size such as \"200 GB\" or \"64 GiB\""};
}

std::vector<KeptCopy> kept_copies(const CacheDirectory& cache) {
  std::vector<KeptCopy> out;
  std::error_code error;
  std::filesystem::directory_iterator entry(cache.path(), error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!number_of_copy(name)) continue;
    const std::optional<struct stat> copy = regular_file(entry->path().string());
    if (!copy) continue;
    const std::optional<struct stat> about = regular_file(entry->path().string() + ".about");
    out.push_back({.name = name,
                   .bytes = static_cast<uint64_t>(copy->st_size),
                   .opened_ns = about ? changed_ns(*about) : 0});
  }
  std::sort(out.begin(), out.end(),
            [](const KeptCopy& a, const KeptCopy& b) { return a.opened_ns < b.opened_ns; });
  return out;
}

void note_opened(const CacheDirectory& cache, const std::string& name) {
  (void)::utimensat(AT_FDCWD, cache.path_of(name + ".about").c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

CopiesInUse::Deleted delete_unused_copies(const CacheDirectory& cache, uint64_t bytes) {
  CopiesInUse::Deleted deleted;
  for (const KeptCopy& copy : kept_copies(cache)) {
    if (deleted.bytes >= bytes) break;
    (void)when_unused(cache, copy.name, [&] {
      if (!is_copy(cache, copy.name)) return;
      // The copy first: what is kept of one that is missing costs nothing.
      if (::unlink(cache.path_of(copy.name).c_str()) != 0) return;
      (void)::unlink(cache.path_of(copy.name + ".about").c_str());
      deleted.bytes += copy.bytes;
      ++deleted.copies;
    });
  }
  return deleted;
}

}  // namespace headrace
