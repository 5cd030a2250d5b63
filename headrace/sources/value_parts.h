// SPDX-License-Identifier: Apache-2.0
// Parts of values: sources whose records hold one-dimensional values of any length (the tokens of a
// document), of which a part can be read by itself, and whose lengths are known.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/sources/source.h"

namespace headrace {

// A source may be one, too. All members may be called from any thread.
class ValueParts {
 public:
  virtual ~ValueParts() = default;
  // Elements of each record's value.
  virtual std::vector<int64_t> value_lengths(size_t field) const = 0;
  // Elements [begin, begin + count), in the field's dtype. `scratch` is for what lies in between.
  // REQUIRES: they are in the value.
  virtual Result<void> read_part(int64_t index, size_t field, int64_t begin, int64_t count,
                                 Buffer& scratch, uint8_t* out) const = 0;
  // What Source::pieces() adds, of a part.
  virtual void part_pieces(int64_t index, size_t field, int64_t begin, int64_t count,
                           std::vector<FilePiece>& out) const = 0;
};

// The source's, or that of the one that it is around; null where it has none.
const ValueParts* parts_of(const Source& source);

// Whether parts of values can be read of every record.
bool has_parts(const Source& source);

// Elements of every record's value of a one-dimensional field. Where no source knows them, every
// record is read once. Throws Exception: a bad record's error, what `progress` throws.
std::vector<int64_t> value_lengths(const Source& source, size_t field, const Progress& progress);

}  // namespace headrace
