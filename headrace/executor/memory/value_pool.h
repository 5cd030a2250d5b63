// SPDX-License-Identifier: Apache-2.0
// Memory for values that have no slot: rows delivered as lists, ragged tensors, and the values that
// these are made of. Memory released by the consumer is reused for later values.
//
// Note [Why values are written into used pages]: a fresh page costs a page fault and its clearing,
// for a float image of 500 x 375 twice as much CPU time as decoding and storing it. Values differ
// in size, so a block is shrunk or extended by whole pages (mremap) when it is taken again: a value
// has only the pages that it needs, and accounting by bytes stays correct. Unused blocks are kept
// as long as they and all values in use fit into `max_bytes`, the part of memory_limit that values
// could fill without a pool; so unused blocks never add to the total.
//
// A block returns to the pool when the last pointer to it is dropped, so memory that anything still
// refers to is never written to again. Thread-safe. Pointers may be dropped in any thread, in a
// forked child, and after the pool is gone.
#pragma once

#include <cstddef>
#include <memory>

namespace headrace {

class ValuePool {
 public:
  explicit ValuePool(size_t max_bytes);

  // Aligned as with make_values(); contents unspecified. Throws std::bad_alloc.
  std::shared_ptr<void> take(size_t bytes);
  size_t unused_bytes() const;

 private:
  class Blocks;
  const std::shared_ptr<Blocks> blocks_;  // shared: values in use refer to it weakly
};

}  // namespace headrace
