// SPDX-License-Identifier: Apache-2.0
// What is checked of documents before they are packed.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/sources/packed/packed.h"

namespace headrace {

// The fields, and the numbers among the options. Throws Exception HR1450.
void check_packable(const Source& documents, const PackedRowOptions& options);
// lengths: in tokens, as packed. Throws Exception HR1450.
void check_lengths(const std::vector<int64_t>& lengths, const PackedRowOptions& options);
// Labels and further fields must have a value for each token. Parts are read according to the
// lengths of the tokens: after the end of a shorter value comes another document's. If documents
// are read completely, lengths are compared then. Throws Exception HR1451.
void check_parts(const Source& documents, const PackedRowOptions& options,
                 const std::vector<int64_t>& lengths);

}  // namespace headrace
