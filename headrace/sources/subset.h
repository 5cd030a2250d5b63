// SPDX-License-Identifier: Apache-2.0
// Views of a source: some of its records, in any order, and divisions into parts. No record is
// copied; a view of a view reads the source itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// The records of `source` with these indices, in this order; one may come more than once.
// Throws Exception HR0430 when an index lies outside.
SourcePtr subset(const SourcePtr& source, std::vector<int64_t> indices);

// The same view of wrap(source), where `source` is what it views; of a source that is not a view,
// wrap(source). For wrappers that know records by the source's own numbers.
SourcePtr with_viewed(const SourcePtr& source,
                      const std::function<SourcePtr(const SourcePtr&)>& wrap);

// For each fraction the indices of its part, each part in the source's order. No record is in two
// parts. Sizes are the fractions of the whole, rounded so that they add up; fractions that add up
// to less than one leave records out. Depends on the arguments and the records alone.
// `stratify_by`: an integer field whose values every part gets in equal proportion (to within one
// record of a value); empty: none. Throws Exception HR0431.
std::vector<std::vector<int64_t>> split_indices(const Source& source,
                                                const std::vector<double>& fractions, uint64_t seed,
                                                std::string_view stratify_by = {});

std::vector<SourcePtr> split(const SourcePtr& source, const std::vector<double>& fractions,
                             uint64_t seed, std::string_view stratify_by = {});

struct Fold {
  SourcePtr train, validation;
};

// For each fold the records in it, and all others. Every record is in one fold. Throws HR0431.
std::vector<Fold> kfold(const SourcePtr& source, int folds, uint64_t seed,
                        std::string_view stratify_by = {});

}  // namespace headrace
