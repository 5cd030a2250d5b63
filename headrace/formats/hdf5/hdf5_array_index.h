// SPDX-License-Identifier: Apache-2.0
// The two array-like chunk indexes: the fixed array and the extensible array.
#pragma once

#include <cstdint>
#include <functional>

#include "headrace/formats/hdf5/hdf5_file.h"

namespace headrace {

// Called for each element that has an address, with its number and contents. `bytes` is 0 if chunks
// are not filtered.
using Hdf5ElementUse =
    std::function<void(uint64_t number, uint64_t address, uint64_t bytes, uint32_t mask)>;

// Visit the first `limit` elements, in order. Throw Exception.
void visit_hdf5_fixed_array(const Hdf5File& file, uint64_t address, bool filtered, uint64_t limit,
                            const Hdf5ElementUse& use);
void visit_hdf5_extensible_array(const Hdf5File& file, uint64_t address, bool filtered,
                                 uint64_t limit, const Hdf5ElementUse& use);

}  // namespace headrace
