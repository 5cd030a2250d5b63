// SPDX-License-Identifier: Apache-2.0
// Caches facts from the headers of a field's values, a few numbers per record, in the user's cache
// folder: a later run on the same dataset does not have to read all files again to get their
// lengths or sizes.
//
// An entry is bound to the source's identity (Note [Identity of a source] in
// formats/opening/opened_source.h) and to sizes and times of some of its files. Nothing is cached
// for a source that was not opened by path.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

class HeaderCache {
 public:
  // Checks files of the source, so it must be created before their headers are read: values of
  // files that change meanwhile are not used later.
  HeaderCache(const Source& source, size_t field);

  // `count` numbers, in the order of records; empty if there is no such entry.
  std::optional<std::vector<int64_t>> read(size_t count) const;
  // Does nothing if the cache cannot be written.
  void write(std::span<const int64_t> numbers) const;

 private:
  std::string name_;                  // of the entry; empty: nothing is cached
  std::array<uint64_t, 2> key_ = {};  // of source and field, and of the files' status
};

}  // namespace headrace
