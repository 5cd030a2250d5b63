// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/opaque_rows.h"

#include <cstdlib>
#include <cstring>

namespace headrace {

void OpaqueRows::rows(const RowBlock& block) {
  const size_t bytes = size_t(std::abs(block.stride)) * size_t(block.count);
  if (opaque_.size() < bytes) {
    opaque_.resize(bytes);
    std::memset(opaque_.data(), 255, bytes);
  }
  RowBlock with_alpha = block;
  with_alpha.channel[3] = opaque_.data();
  if (block.stride < 0) with_alpha.channel[3] -= block.stride * (block.count - 1);
  to_->rows(with_alpha);
}

}  // namespace headrace
