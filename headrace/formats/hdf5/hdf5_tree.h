// SPDX-License-Identifier: Apache-2.0
// The B-trees of version 2: sorted records of one size, of any kind. Names of
// large groups and chunks of datasets that grow in several directions are kept in
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "headrace/formats/hdf5/hdf5_file.h"

namespace headrace {

// Calls `use` with each record, in order. `types`: which kinds of records are
// expected; `use` is told which it is. Throws Exception.
void visit_hdf5_tree(const Hdf5File& file, uint64_t address, std::span<const uint8_t> types,
                     const std::function<void(uint8_t type, std::span<const uint8_t>)>& use);

}  // namespace headrace
