// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/shared_rows.h"

#include <algorithm>

namespace headrace {

void SharedRows::begin(const Window& window) {
  window_ = window;
  parts_.clear();
}

void SharedRows::add(RowSink& sink, const Window& part) { parts_.push_back({&sink, part}); }

void SharedRows::rows(const RowBlock& block) {
  for (const auto& [sink, part] : parts_) {
    const int top = part.y - window_.y;
    const int first = std::max(block.y, top);
    const int end = std::min(block.y + block.count, top + part.height);
    if (first >= end) continue;
    RowBlock its = block;
    its.y = first - top;
    its.count = end - first;
    const ptrdiff_t skipped = (first - block.y) * block.stride + (part.x - window_.x) * block.step;
    for (const uint8_t*& channel : its.channel) {
      if (channel) channel += skipped;
    }
    sink->rows(its);
  }
}

}  // namespace headrace
