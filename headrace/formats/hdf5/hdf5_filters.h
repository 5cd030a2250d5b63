// SPDX-License-Identifier: Apache-2.0
// Undoes the filters of stored HDF5 chunks. May be called from any thread; each thread has its own
// scratch memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/formats/hdf5/hdf5_messages.h"

namespace headrace {

// The first unknown filter of a list ("blosc (filter 32001)"). Empty: all are supported.
std::string unknown_hdf5_filter(const std::vector<Hdf5Filter>& filters);

// Undoes the filters of a stored chunk, the last one first; those whose bit is set in `mask` were
// skipped when it was written. `out` has the chunk's size, and is filled completely. Returns the
// error in one line, empty if there is none. No filter writes more than the chunk and a few bytes.
std::string undo_hdf5_filters(const std::vector<Hdf5Filter>& filters, uint32_t mask,
                              size_t element_bytes, std::span<const uint8_t> stored,
                              std::span<uint8_t> out);

}  // namespace headrace
