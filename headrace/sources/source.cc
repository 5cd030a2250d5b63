// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/source.h"

#include <algorithm>
#include <atomic>

namespace headrace {

uint64_t Source::next_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

namespace {
constexpr char kObject[] = "object of this process: ";
}

std::string Source::identity() const { return kObject + std::to_string(serial_); }

bool has_shared_identity(const Source& source) {
  return source.identity().find(kObject) == std::string::npos;
}

std::vector<int64_t> usual_block_ends(int64_t size) {
  constexpr int64_t kUsual = 256;
  std::vector<int64_t> ends;
  for (int64_t end = 0; end < size;) ends.push_back(end = std::min(size, end + kUsual));
  return ends;
}

std::vector<int64_t> Source::block_ends() const { return usual_block_ends(size()); }

}  // namespace headrace
