// SPDX-License-Identifier: Apache-2.0
// A container's index stored next to remote data, for all machines that open it: an object in the
// folder ".headrace" below the files' folder. Its name is derived from the files and their
// versions, so that an index of other versions is never found; its contents are validated like
// those of a cached index. Only `headrace index` writes it.
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

// The path of the index, whether or not it exists; empty for local files, and for files whose
// version cannot be determined.
std::string sidecar_path(std::string_view kind, const FileSet& files);
// The bytes of the index, unverified; empty if not available.
std::optional<Buffer> read_sidecar(std::string_view kind, const FileSet& files);

struct IndexSidecar {
  std::string path;
  std::vector<uint8_t> bytes;
};
// The indexes of all containers that a source is made of.
std::vector<IndexSidecar> index_sidecars(const Source& source);

}  // namespace headrace
