// SPDX-License-Identifier: Apache-2.0
// Views of a source: some of its records, in any order, and splits into parts. Records are not
// copied; a view of a view reads the underlying source directly.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// The records of `source` with these indices, in this order; duplicates are allowed. Throws
// Exception HR0430 if an index is out of range.
SourcePtr subset(const SourcePtr& source, std::vector<int64_t> indices);

// If `source` is a view of a source s: the same view of wrap(s). Otherwise wrap(source). For
// wrappers that use the underlying source's record numbers.
SourcePtr with_viewed(const SourcePtr& source,
                      const std::function<SourcePtr(const SourcePtr&)>& wrap);

// For each fraction, the indices of its part, in the source's order. Parts are disjoint. Their
// sizes are the fractions of the whole, rounded so that they add up; fractions that add up to less
// than one leave records out. Depends on the arguments and the records alone. `stratify_by`: an
// integer field whose values have the same proportions in every part (to within one record per
// value); empty: none. Throws Exception HR0431.
std::vector<std::vector<int64_t>> split_indices(const Source& source,
                                                const std::vector<double>& fractions, uint64_t seed,
                                                std::string_view stratify_by = {});

std::vector<SourcePtr> split(const SourcePtr& source, const std::vector<double>& fractions,
                             uint64_t seed, std::string_view stratify_by = {});

struct Fold {
  SourcePtr train, validation;
};

// For each fold, the records in it (validation) and all others (train). Every record is in one
// fold. Throws HR0431.
std::vector<Fold> kfold(const SourcePtr& source, int folds, uint64_t seed,
                        std::string_view stratify_by = {});

}  // namespace headrace
