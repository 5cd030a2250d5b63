// SPDX-License-Identifier: Apache-2.0
// The two checksums of HDF5 files: of structures, and of chunks that ask for
// one.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// Bob Jenkins' lookup3 ("hashlittle") with the start value zero: stands after
// every structure that younger versions of the format write.
uint32_t hdf5_metadata_checksum(std::span<const uint8_t> bytes);

// Fletcher's checksum of 16-bit big-endian words, as the filter "fletcher32"
// appends it.
uint32_t hdf5_fletcher32(std::span<const uint8_t> bytes);

}  // namespace headrace
