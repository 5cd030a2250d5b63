// SPDX-License-Identifier: Apache-2.0
// Partial reads: an interface for sources of one-dimensional values (the tokens of a document)
// whose lengths are known and whose parts can be read separately.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/sources/source.h"

namespace headrace {

// Implemented by sources, in addition to Source. All members may be called from any thread.
class ValueParts {
 public:
  virtual ~ValueParts() = default;
  // The number of elements of each record's value.
  virtual std::vector<int64_t> value_lengths(size_t field) const = 0;
  // Reads elements [begin, begin + count) to `out`, in the field's dtype. `scratch` is for
  // intermediate data. REQUIRES: the range is within the value.
  virtual Result<void> read_part(int64_t index, size_t field, int64_t begin, int64_t count,
                                 Buffer& scratch, uint8_t* out) const = 0;
  // Like Source::pieces(), for a part.
  virtual void part_pieces(int64_t index, size_t field, int64_t begin, int64_t count,
                           std::vector<FilePiece>& out) const = 0;
};

// The interface of the source, or of the source that it wraps; null if there is none.
const ValueParts* parts_of(const Source& source);

// Whether parts of values can be read for every record.
bool has_parts(const Source& source);

// The number of elements of every record's value, for a one-dimensional field. If no source knows
// them, every record is read once. Throws a bad record's error, and what `progress` throws.
std::vector<int64_t> value_lengths(const Source& source, size_t field, const Progress& progress);

}  // namespace headrace
