// SPDX-License-Identifier: Apache-2.0
// Facts from headers of a field's values, a few numbers per record, in the user's cache: a later
// run of the same dataset need not read all files again to know how long or large they are.
//
// Bound to the source's identity (Note [Identity of a source] in formats/opening/opened_source.h)
// and to sizes and times of some of its files. A source that was not opened keeps nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

class KeptHeaders {
 public:
  // Checks files of the source, so it is created before their headers are read: values of files
  // that change meanwhile are not used later.
  KeptHeaders(const Source& source, size_t field);

  // `count` numbers, in the order of records; none where there is no such entry.
  std::optional<std::vector<int64_t>> read(size_t count) const;
  // If the cache cannot be written, nothing is kept.
  void write(std::span<const int64_t> numbers) const;

 private:
  std::string name_;                  // of the entry; empty: nothing is kept
  std::array<uint64_t, 2> key_ = {};  // of source and field, and of the files' present state
};

}  // namespace headrace
