// SPDX-License-Identifier: Apache-2.0
// Writes zeros: each thread 16 bytes.
#pragma once

#include <cstdint>

#include "headrace/kernels/batch/machine_words.h"

namespace headrace {

struct ClearWords {
  void* memory = nullptr;  // aligned to 16 bytes
  int64_t bytes = 0;       // a multiple of 16

  HEADRACE_HD int64_t items() const { return bytes / 16; }
  HEADRACE_HD void operator()(int64_t item) const {
    words::store(static_cast<uint8_t*>(memory) + item * 16, words::Together<4>{});
  }
};

}  // namespace headrace
