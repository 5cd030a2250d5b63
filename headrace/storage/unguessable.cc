// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/unguessable.h"

#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>

#include "headrace/base/random.h"

namespace headrace {

std::string unguessable() {
  static std::atomic<uint64_t> counter{0};
  uint64_t number = 0;
  // Early after the machine's start the system may have none yet: then names that only differ.
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != ssize_t{sizeof number}) {
    number = mix64(static_cast<uint64_t>(::getpid()), counter.fetch_add(1));
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

}  // namespace headrace
