// SPDX-License-Identifier: Apache-2.0
// Version 2 B-trees: sorted records of a fixed size, of any type. They store the names of large
// groups, and the chunks of datasets that can grow in several dimensions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "headrace/formats/hdf5/hdf5_file.h"

namespace headrace {

// Calls `use` with each record, in order. `types`: the accepted record types; `use` is passed the
// actual type. Throws Exception.
void visit_hdf5_tree(const Hdf5File& file, uint64_t address, std::span<const uint8_t> types,
                     const std::function<void(uint8_t type, std::span<const uint8_t>)>& use);

}  // namespace headrace
