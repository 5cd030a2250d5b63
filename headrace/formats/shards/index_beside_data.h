// SPDX-License-Identifier: Apache-2.0
// A container's index that is kept next to the data, for all machines that open it: an object in
// the folder ".headrace" of the files' folder. Its name follows from the files and their versions,
// so that an index of other versions is never met; what is there is checked as a kept index is.
// `headrace index` alone writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/formats/shards/container_index.h"
#include "headrace/sources/source.h"
#include "headrace/storage/file_set.h"

namespace headrace {

// Where it is or would be; empty for files of the local system, and for those whose version cannot
// be known.
std::string path_beside(std::string_view kind, const FileSet& files);
// Its bytes, as they are there: unchecked. None where it is not to be had.
std::optional<Buffer> bytes_beside(std::string_view kind, const FileSet& files);

struct IndexBeside {
  std::string path;
  std::vector<uint8_t> bytes;
};
// Indexes of the containers that a source is made of.
std::vector<IndexBeside> indexes_beside(const Source& source);

}  // namespace headrace
