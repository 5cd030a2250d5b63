// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/moved_images.h"

#include <cstring>

namespace headrace {

bool MovedImages::takes(const PendingPass&, Size, int) { return false; }

void MovedImages::plan(std::span<const MovedImage>, Size, int) {
  parameters_.clear();
  scratch_ = 0;
}

void MovedImages::write(uint8_t* to) const {
  if (!parameters_.empty()) std::memcpy(to, parameters_.data(), parameters_.size());
}

void MovedImages::queue(Stream&, const uint8_t*, uint8_t*, uint8_t*) const {}

}  // namespace headrace
