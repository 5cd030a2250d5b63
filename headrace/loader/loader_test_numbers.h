// SPDX-License-Identifier: Apache-2.0
// For tests of the loader: usual options, and an epoch of numbers.
#pragma once

#include <utility>
#include <vector>

#include "headrace/executor/executor_test_numbers.h"
#include "headrace/loader.h"

namespace headrace {

inline LoaderOptions options(int64_t batch, int threads = 2) {
  LoaderOptions out;
  out.batch_size = batch;
  out.threads = threads;
  out.shuffle = true;
  out.memory_limit = size_t{256} << 20;
  return out;
}

inline std::vector<std::vector<int64_t>> epoch_of(Loader& loader) {
  std::vector<std::vector<int64_t>> out;
  while (auto batch = loader.next()) {
    check_rows(*batch);
    out.push_back(labels_of(*batch));
  }
  return out;
}

}  // namespace headrace
