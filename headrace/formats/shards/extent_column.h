// SPDX-License-Identifier: Apache-2.0
// One integer of every record of a container, read on all cores without the bytes around it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/formats/shards/container_index.h"
#include "headrace/storage/file_set.h"
#include "headrace/storage/file_window.h"

namespace headrace {

// The record's value, by small reads from its file. Called from several threads, and not for
// records that the index says are bad.
using ReadInteger =
    std::function<Result<int64_t>(FileWindow& window, int64_t record, const Extent& extent)>;

// -1 for bad records: as Source::integer_column. Throws Exception: storage errors, with file and
// record.
std::vector<int64_t> column_of(const FileSet& files, const ContainerIndex& index,
                               const ReadInteger& read);

}  // namespace headrace
