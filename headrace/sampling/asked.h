// SPDX-License-Identifier: Apache-2.0
// Orders that are decided elsewhere, one epoch at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headrace/sampling/sampler.h"

namespace headrace {

struct AskedOrder {
  // The order of an epoch, of which that epoch is used: a pure function between two calls of
  // forget(), called once per seed and epoch, at times again. Loader calls it on its consumer's
  // thread, before an epoch's first batch; reading ahead may ask for the epoch that follows.
  std::function<SamplerPtr(uint64_t seed, uint64_t epoch)> ask;
  int64_t positions = 0;             // of every epoch
  std::vector<int64_t> batch_sizes;  // where the order decides them: they add up to `positions`
  uint64_t fingerprint = 0;          // of whatever decides the order
  std::string description;
};

// Throws HR0722 where an epoch has no position. Its index() throws what `ask` throws, and HR0726
// where that gives another number of positions, or batches of other sizes.
SamplerPtr asked(AskedOrder order);

}  // namespace headrace
