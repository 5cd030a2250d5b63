// SPDX-License-Identifier: Apache-2.0
// Samplers whose orders are computed by external code, one epoch at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headrace/sampling/sampler.h"

namespace headrace {

struct ExternalOrder {
  // The user's function that returns the order of an epoch: pure between two calls of forget(),
  // called once per seed and epoch, occasionally again. Loader calls it on its consumer's thread,
  // before an epoch's first batch; read-ahead may call it for the next epoch.
  std::function<SamplerPtr(uint64_t seed, uint64_t epoch)> ask;
  int64_t positions = 0;             // per epoch
  std::vector<int64_t> batch_sizes;  // if the sampler decides them: they add up to `positions`
  uint64_t fingerprint = 0;          // of everything that determines the order
  std::string description;
};

// Throws HR0722 if an epoch has no positions. index() throws what `ask` throws, and HR0726 if that
// returns a different number of positions, or batches of different sizes.
SamplerPtr external_order(ExternalOrder order);

}  // namespace headrace
