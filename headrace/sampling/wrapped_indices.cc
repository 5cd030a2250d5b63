// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/wrapped_indices.h"

#include <algorithm>

namespace headrace {

void wrapped_indices(const Sampler& sampler, uint64_t seed, uint64_t epoch, int64_t begin,
                     int64_t size, std::span<int64_t> out) {
  while (!out.empty()) {
    const int64_t position = begin % size;
    const auto run = static_cast<size_t>(std::min<int64_t>(std::ssize(out), size - position));
    sampler.indices(seed, epoch, position, out.first(run));
    out = out.subspan(run);
    begin += static_cast<int64_t>(run);
  }
}

}  // namespace headrace
