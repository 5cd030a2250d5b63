// SPDX-License-Identifier: Apache-2.0
// Sources made of several sources: one after the other, mixed by weight, or joined record by
// record. Each is a source like any other: random access, exact order, resumable, no copy of data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// The records of all, one source after the other. All must have the same fields (in any order);
// where shapes differ, the joint shape is open. Throws Exception HR0496: no source, fields or
// classes that differ.
SourcePtr concat(std::vector<SourcePtr> sources);

// `size` records of which each source has its weight's share, spread evenly. A source that is drawn
// more often than it has records gives all of them before any comes again; one that is drawn less
// often gives a random part of its records. Depends on the arguments alone.
// `size` 0: as many records as are needed for every record of every source to come at least once.
// Throws Exception HR0496, HR0497: weights that are no positive numbers, one for each source; an
// empty source.
SourcePtr mix(std::vector<SourcePtr> sources, const std::vector<double>& weights, int64_t size = 0,
              uint64_t seed = 0);

struct JoinOptions {
  // "key": the records' keys, without the source's root and without suffix, so that a/1.jpg in one
  // folder meets a/1.wav in another. "position": record i of both, which have as many. Else an
  // integer field of both.
  std::string on = "key";
  std::map<std::string, std::string> rename = {};  // fields of `right` that get another name
  std::vector<std::string> kinds = {};             // of fields: field_kinds.h, kinds_from()
};

// For each record of `left` that has a partner its fields, and after them the partner's. Records
// without a partner are left out, and description() counts them. Several records of `left` may have
// the same partner. Throws Exception HR0498: a name of both, a value that comes twice in `right`,
// no such field, nothing in common; HR0182: an image that is renamed to a mask.
SourcePtr join(const SourcePtr& left, const SourcePtr& right, const JoinOptions& options = {});

}  // namespace headrace
