// SPDX-License-Identifier: Apache-2.0
// Variable-length values: an element has the length and position of its value, in one of the file's
// "global heap collections".
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/buffer.h"
#include "headrace/formats/hdf5/hdf5_file.h"

namespace headrace {

// An element of a dataset with variable-length values.
struct Hdf5Reference {
  uint32_t count = 0;    // number of its elements
  uint32_t index = 0;    // index in the collection
  uint64_t address = 0;  // address of the collection
  // Whether the value is empty.
  bool is_empty() const { return count == 0 || address == 0 || address == kHdf5Undefined; }
};
Hdf5Reference hdf5_reference(const Hdf5File& file, std::span<const uint8_t> element);

// The position after the value that was last read. The next value is usually there, so one read
// gets both. For one thread; must be reset before its file is closed.
struct Hdf5Place {
  const Hdf5File* file = nullptr;
  uint64_t address = 0;  // of the collection
  uint64_t size = 0;     // of the collection
  uint64_t next = 0;     // offset of the next value's header in it
};

// Reads a value of this size into `out`, unless it is empty, and sets `place` to the position after
// it.
Result<std::span<uint8_t>> read_hdf5_value(const Hdf5File& file, const Hdf5Reference& reference,
                                           uint64_t bytes, Buffer& out, Hdf5Place& place);

}  // namespace headrace
