// SPDX-License-Identifier: Apache-2.0
// The files of a container, with compressed files replaced by decompressed copies. Files are
// decompressed in parallel, on all cores.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headrace/sources/source.h"
#include "headrace/storage/file_set.h"
#include "headrace/storage/unpacked_copy.h"

namespace headrace {

struct UnpackedFiles {
  std::vector<std::string> paths;       // files to read: originals or decompressed copies
  std::vector<std::string> names;       // names to show to the user
  std::map<std::string, Error> damage;  // by path: why a copy is incomplete

  // Opens the files for reading; errors contain the names known to the user.
  std::unique_ptr<FileSet> file_set() const;
  const Error* damage_of(const std::string& path) const;
};

// Whether a file is the uncompressed container, judging by its first bytes (512, or fewer if the
// file is shorter).
using IsPlain = bool (*)(std::span<const uint8_t> first_bytes);

// Throws Exception: HR0201..HR0205, HR0209, HR0210, HR0212, what
// `progress` throws.
UnpackedFiles unpacked_files(std::vector<std::string> paths, IsPlain is_plain,
                             const Progress& progress,
                             const CacheDirectory& cache = CacheDirectory::of_user());

// The compression of a file, judging by its first bytes; kNone if they are the beginning of the
// plain container.
Packing packing_of_file(const std::string& path, IsPlain is_plain);

// Whether the file is the container, plain or compressed, judging by its first decompressed bytes.
bool begins_like(const std::string& path, IsPlain is_plain);

}  // namespace headrace
