// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/source.h"

#include <algorithm>
#include <atomic>

namespace headrace {

uint64_t Source::next_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

std::string Source::identity() const { return "source " + std::to_string(serial_); }

std::vector<int64_t> Source::block_ends() const {
  constexpr int64_t kUsual = 256;
  std::vector<int64_t> ends;
  for (int64_t end = 0; end < size();) ends.push_back(end = std::min(size(), end + kUsual));
  return ends;
}

}  // namespace headrace
