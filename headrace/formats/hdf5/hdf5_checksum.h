// SPDX-License-Identifier: Apache-2.0
// The two checksums of HDF5 files: for structures, and for chunks with the filter fletcher32.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// Bob Jenkins' lookup3 ("hashlittle") with initial value zero: it follows every structure in newer
// versions of the format.
uint32_t hdf5_metadata_checksum(std::span<const uint8_t> bytes);

// Fletcher's checksum of 16-bit big-endian words, as the filter "fletcher32"
// appends it.
uint32_t hdf5_fletcher32(std::span<const uint8_t> bytes);

}  // namespace headrace
