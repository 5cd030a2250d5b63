// SPDX-License-Identifier: Apache-2.0
// Checks documents before they are packed.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/sources/packed/packed.h"

namespace headrace {

// Checks the fields and the numeric options. Throws Exception HR1450.
void check_packable(const Source& documents, const PackedRowOptions& options);
// `lengths`: in tokens, as packed. Throws Exception HR1450.
void check_lengths(const std::vector<int64_t>& lengths, const PackedRowOptions& options);
// Labels and additional fields must have a value for each token. Parts of documents are read by the
// lengths of the tokens: past the end of a shorter value, they would belong to the next document.
// If documents are read completely, lengths are compared then. Throws Exception HR1451.
void check_parts(const Source& documents, const PackedRowOptions& options,
                 const std::vector<int64_t>& lengths);

}  // namespace headrace
