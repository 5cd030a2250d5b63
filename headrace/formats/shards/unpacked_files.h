// SPDX-License-Identifier: Apache-2.0
// The files of a container, those that are packed as their unpacked copies.
// Many are unpacked at the same time, on all cores.
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
  std::vector<std::string> paths;       // to read: files as they are, and copies
  std::vector<std::string> names;       // as the caller knows them
  std::map<std::string, Error> damage;  // by path: why a copy ends before its file does

  // For reading; errors name the files as the caller knows them.
  std::unique_ptr<FileSet> file_set() const;
  const Error* damage_of(const std::string& path) const;
};

// Whether the first bytes of a file (512, where it has them) are those of the
// plain container.
using IsPlain = bool (*)(std::span<const uint8_t> first_bytes);

// Throws Exception: HR0201..HR0205, HR0209, HR0210, HR0212, what
// `progress` throws.
UnpackedFiles unpacked_files(std::vector<std::string> paths, IsPlain is_plain,
                             const Progress& progress,
                             const CacheDirectory& cache = CacheDirectory::of_user());

// The packing of a file that begins like a packed one, and not like the plain
// container.
Packing packing_of_file(const std::string& path, IsPlain is_plain);

// Whether the file is the container, plain or packed, by the first bytes of
// what is in it.
bool begins_like(const std::string& path, IsPlain is_plain);

}  // namespace headrace
