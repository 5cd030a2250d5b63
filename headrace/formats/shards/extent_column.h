// SPDX-License-Identifier: Apache-2.0
// Reads one integer field of all records of a container, on all cores, without the other bytes of
// the records.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/formats/shards/container_index.h"
#include "headrace/storage/file_set.h"
#include "headrace/storage/file_window.h"

namespace headrace {

// Reads a record's value with small reads from its file. Called from several threads, but not for
// records that the index marks as bad.
using ReadInteger =
    std::function<Result<int64_t>(FileWindow& window, int64_t record, const Extent& extent)>;

// -1 for bad records, as for Source::integer_column. Throws Exception: storage errors, with file
// and record.
std::vector<int64_t> column_of(const FileSet& files, const ContainerIndex& index,
                               const ReadInteger& read);

}  // namespace headrace
