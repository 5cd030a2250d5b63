// SPDX-License-Identifier: Apache-2.0
// Files of any storage for Python code that reads them by position.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "bindings/bindings.h"
#include "headrace/storage/file_set.h"

namespace headrace::python {

using StoredRange = std::tuple<int64_t, uint64_t, uint64_t>;  // file, offset, bytes

struct StoredFiles {
  std::shared_ptr<const FileSet> set;  // shared: with sources that read from it

  // Throws nb::index_error for a file that is not one of them.
  std::vector<FileRange> checked(const std::vector<StoredRange>& ranges) const;
};

// REQUIRES: the GIL.
nb::object array_from_bytes(Buffer bytes);

void bind_stored_files(nb::module_& module);

}  // namespace headrace::python
