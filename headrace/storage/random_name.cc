// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/random_name.h"

#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "headrace/base/number_text.h"
#include "headrace/base/random.h"

namespace headrace {

std::string random_name() {
  static std::atomic<uint64_t> counter{0};
  uint64_t number = 0;
  // Shortly after boot the system may have no randomness yet: then names are only distinct.
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != ssize_t{sizeof number}) {
    number = mix64(static_cast<uint64_t>(::getpid()), counter.fetch_add(1));
  }
  return hex_text(number);
}

}  // namespace headrace
