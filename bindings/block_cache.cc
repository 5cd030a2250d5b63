// SPDX-License-Identifier: Apache-2.0
// For `headrace cache`: shows and deletes the blocks in the user's cache folder.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "headrace/storage/block_folder.h"
#include "headrace/storage/file.h"

namespace headrace::python {
namespace {

// Null if there is no such folder; it is not created.
std::unique_ptr<BlockFolder> folder_of_user() {
  std::string why;
  const CacheDirectory cache = CacheDirectory::of_user();
  const std::string path = cache.path_of("blocks");
  if (path.empty() || !is_there(path)) return nullptr;
  auto folder = BlockFolder::open(cache, why);
  if (!folder) throw nb::value_error((path + ": " + why).c_str());
  return folder;
}

}  // namespace

void bind_block_cache(nb::module_& module) {
  module.def(
      "cached_blocks",
      [] {
        nb::list out;
        const auto folder = folder_of_user();
        if (!folder) return out;
        for (const BlockFolder::Entry& entry : folder->entries()) {
          const BlockId id = folder->id_of(entry.file);
          out.append(nb::make_tuple(str_from_bytes(id.path), id.bytes, entry.bytes));
        }
        return out;
      },
      nb::sig("def cached_blocks() -> list[tuple[str, int, int]]"),
      "The blocks in the user's cache folder: the file's path, empty if it is damaged; bytes of "
      "the file; bytes on disk.");
  module.def(
      "clear_cached_blocks",
      [] {
        const auto folder = folder_of_user();
        ReleasedGil no_gil;
        return folder ? folder->clear() : uint64_t{0};
      },
      "Deletes the blocks that no process uses. Returns the number of bytes freed.");
  module.def(
      "cache_folder", [] { return str_from_bytes(CacheDirectory::of_user().path()); },
      "The user's cache directory; empty if there is none.");
}

}  // namespace headrace::python
