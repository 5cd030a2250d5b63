// SPDX-License-Identifier: Apache-2.0
// Sources made of several sources: concatenated, mixed by weight, or joined by key. A combined
// source is like any other: random access, deterministic order, resumable, no copy of the data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// The records of all sources, one source after the other. All must have the same fields (in any
// order); where shapes differ, the combined shape is open (-1). Throws Exception HR0496: no source,
// or fields or classes that differ.
SourcePtr concat(std::vector<SourcePtr> sources);

// `size` records, from each source in proportion to its weight, spread evenly. A source that is
// drawn more often than it has records yields all of them before repeating any; one that is drawn
// less often yields a random part of its records. Depends on the arguments alone. `size` 0: as many
// records as are needed for every record of every source to appear at least once. Throws Exception
// HR0496; HR0497: weights that are not one positive number per source, or an empty source.
SourcePtr mix(std::vector<SourcePtr> sources, const std::vector<double>& weights, int64_t size = 0,
              uint64_t seed = 0);

struct JoinOptions {
  // "key": match the records' keys, without the source's root and without suffix, so that a/1.jpg
  // in one folder matches a/1.wav in another. "position": record i of each; both sources must have
  // the same size. Otherwise the name of an integer field of both.
  std::string on = "key";
  std::map<std::string, std::string> rename = {};  // fields of `right` to rename
  std::vector<std::string> kinds = {};             // as for kinds_from() in field_kinds.h
};

// An inner join: for each record of `left` with a match in `right`, the fields of both, those of
// `left` first. Records without a match are left out, and description() counts them. Several
// records of `left` may match the same record. Throws Exception HR0498: a field name in both, a
// duplicate key in `right`, an unknown field, no matches; HR0182: an image renamed to a mask.
SourcePtr join(const SourcePtr& left, const SourcePtr& right, const JoinOptions& options = {});

}  // namespace headrace
