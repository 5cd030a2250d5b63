// SPDX-License-Identifier: Apache-2.0
// What a source also is whose records are not all alike to a shuffle: in a mix every stretch has
// its proportions, and must have them still when the records are shuffled.
#pragma once

#include <cstdint>

namespace headrace {

class ShufflesItself {
 public:
  virtual ~ShufflesItself() = default;
  // The record at a position of an order that is a function of the key and has each record once.
  // Called from any thread. REQUIRES: 0 <= position < size().
  virtual int64_t shuffled(uint64_t key, int64_t position) const = 0;
};

}  // namespace headrace
