// SPDX-License-Identifier: Apache-2.0
// Values of variable length: an element has the length and position of its value, in one of the
// file's "global heap collections".
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/buffer.h"
#include "headrace/formats/hdf5/hdf5_file.h"

namespace headrace {

// An element of a dataset whose values have a length each.
struct Hdf5Reference {
  uint32_t count = 0;    // of what the value is made of
  uint32_t index = 0;    // in the collection
  uint64_t address = 0;  // of the collection
  // None of them: an empty value.
  bool is_empty() const { return count == 0 || address == 0 || address == kHdf5Undefined; }
};
Hdf5Reference hdf5_reference(const Hdf5File& file, std::span<const uint8_t> element);

// The place after the value that was read last. What stands there is mostly what is wanted next,
// and then one read has it. Of one thread; forgotten before its file is closed.
struct Hdf5Place {
  const Hdf5File* file = nullptr;
  uint64_t address = 0;  // of the collection
  uint64_t size = 0;     // of the collection
  uint64_t next = 0;     // where in it the next value's head begins
};

// Reads a value of so many bytes into `out`, where it stands somewhere, and moves `place` after
// it.
Result<std::span<uint8_t>> read_hdf5_value(const Hdf5File& file, const Hdf5Reference& reference,
                                           uint64_t bytes, Buffer& out, Hdf5Place& place);

}  // namespace headrace
