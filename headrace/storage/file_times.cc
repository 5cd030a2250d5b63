// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/file_times.h"

#include <sys/stat.h>

#include <chrono>

// Note [What changed just now]: the timestamps of a file system may have a resolution of only two
// seconds. A change in the same tick in which a file or folder was inspected leaves its time
// unchanged, and would be missed forever. So facts are only cached if the time is further in the
// past.

namespace headrace {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kSlowestTickNs = 2 * kSecondNs;

}  // namespace

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int64_t changed_ns(const struct stat& status) {
  return static_cast<int64_t>(static_cast<uint64_t>(status.st_mtim.tv_sec) * kSecondNs +
                              static_cast<uint64_t>(status.st_mtim.tv_nsec));
}

int64_t status_changed_ns(const struct stat& status) {
  return static_cast<int64_t>(static_cast<uint64_t>(status.st_ctim.tv_sec) * kSecondNs +
                              static_cast<uint64_t>(status.st_ctim.tv_nsec));
}

bool changed_just_now(int64_t changed_ns, int64_t looked_at_ns) {
  return changed_ns > looked_at_ns - kSlowestTickNs;
}

}  // namespace headrace
