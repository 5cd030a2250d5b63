// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/block_cache_options.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "headrace/base/error.h"
#include "headrace/base/text.h"

namespace headrace {
namespace {

const ErrorCode kInvalidLimit{
    "HR0298", ErrorKind::kConfig, "invalid limit of the disk cache",
    "disk_cache= and HEADRACE_DISK_CACHE say how many bytes of local disk the blocks of files that "
    "lie far away may take, in HEADRACE_CACHE: \"200GB\", \"1.5TiB\" or a number. Blocks have 8 "
    "MiB; with fewer than four there is nothing to choose from when one has to go."};

constexpr uint64_t kLeastBlocks = 4;

}  // namespace

uint64_t checked_limit(const BlockCacheOptions& options) {
  const uint64_t least = kLeastBlocks * options.block_bytes;
  if (options.limit >= least) return options.limit;
  raise(kInvalidLimit,
        "a disk cache of " + std::to_string(options.limit) + " bytes is too small; at least " +
            std::to_string(least) + " (" + std::to_string(kLeastBlocks) + " blocks) are needed",
        "disk_cache=" + std::to_string(least) + " or more, or none");
}

std::optional<uint64_t> bytes_from_text(std::string_view text) {
  text = trimmed(text);
  double number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || !(number >= 0)) return {};
  std::string unit(end, text.data() + text.size());
  while (!unit.empty() && unit.front() == ' ') unit.erase(0, 1);
  for (char& c : unit) c = lower_case(c);
  double of_unit = 1;
  if (!unit.empty() && unit != "b") {
    const size_t power = std::string_view("kmgt").find(unit.front());
    const std::string_view rest = std::string_view(unit).substr(1);
    if (power == std::string_view::npos ||
        !(rest.empty() || rest == "b" || rest == "i" || rest == "ib")) {
      return {};
    }
    of_unit = std::pow(rest.starts_with('i') ? 1024.0 : 1000.0, static_cast<double>(power + 1));
  }
  if (!(number * of_unit < 9e18)) return {};
  return static_cast<uint64_t>(number * of_unit);
}

uint64_t limit_of_environment() {
  const char* text = std::getenv("HEADRACE_DISK_CACHE");
  if (!text || !*text) return 0;
  const std::optional<uint64_t> limit = bytes_from_text(text);
  if (limit) return *limit;
  raise(kInvalidLimit, "HEADRACE_DISK_CACHE is \"" + std::string(text) + "\"",
        "HEADRACE_DISK_CACHE=200GB");
}

}  // namespace headrace
