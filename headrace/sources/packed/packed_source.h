// SPDX-License-Identifier: Apache-2.0
// The source of packed rows: reads the pieces of documents that make up a row.
#pragma once

#include <cstdint>

#include "headrace/sources/packed/packed.h"

namespace headrace {

// `fields`: of the documents. `of_lengths`: a hash of the documents' lengths. REQUIRES: the checks
// of packable.h have passed.
SourcePtr packed_source(SourcePtr documents, const PackedRowOptions& options,
                        const DocumentFields& fields, DocumentRows rows, uint64_t of_lengths);

}  // namespace headrace
