// SPDX-License-Identifier: Apache-2.0
// What the headers of a field's values said, a few numbers a record, in the user's cache: a later
// run of the same dataset need not read all files again to know how long or large they are.
//
// Bound to the source's identity (Note [Identity of a source] in formats/opening/opened_source.h)
// and to sizes and times of some of its files. A source that was not opened keeps nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// `per_record` numbers a record, in the order of records; none where there is no such entry.
std::optional<std::vector<int64_t>> kept_headers(const Source& source, size_t field,
                                                 size_t per_record);
// Where the cache cannot be written nothing is kept.
void keep_headers(const Source& source, size_t field, std::span<const int64_t> numbers);

}  // namespace headrace
