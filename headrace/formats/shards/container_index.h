// SPDX-License-Identifier: Apache-2.0
// The index of a container: the position of each record. The positions are found by scanning the
// files once, on all cores, and are stored in the user's cache folder, where the index is valid
// until the files change, or next to the data (its sidecar, see below). A large index is mapped, so
// that the processes of a machine share it.
//
// Data that a scan cannot parse is not silently dropped: the rest of the file after the error is
// one record, which is reported as bad when it is read, so that on_error applies and len() includes
// it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/formats/shards/extents.h"
#include "headrace/sources/source.h"
#include "headrace/storage/cache_directory.h"
#include "headrace/storage/file_set.h"

namespace headrace {

// The reason why a record is known to be bad without reading it.
struct Damage {
  int64_t record = 0;
  uint64_t offset = 0;  // offset in its file
  std::string code;     // id of a registered ErrorCode
  std::string what;
  std::string hint;
};

struct ContainerIndex {
  Extents records;
  std::vector<Damage> damage;              // sorted by record
  std::map<std::string, int64_t> tallies;  // counts defined by the format: "jpg" -> 1000
  std::string kind;                        // same as in index_of()

  bool is_damaged(int64_t record) const {
    return std::ranges::binary_search(damage, record, {}, &Damage::record);
  }
  // Whether the current file has too many errors to list: then the rest of it is a single bad
  // record, and the list stays small relative to the file.
  bool is_full_of_damage(const File& file) const {
    constexpr uint64_t kAlways = 1000, kBytesAPlace = 4096;
    return damage.size() >= kAlways + file.size() / kBytesAPlace;
  }
  // Ends the current file with a bad record that extends to its end.
  void add_damage(const File& file, uint64_t offset, const ErrorCode& code, std::string what,
                  std::string hint = {});
};

// Scans one file: adds its records to `out`, in order, without calling end_file(). Calls `passed`
// occasionally with the offset reached; `passed` may throw to cancel the scan. Returns a storage
// error if bytes cannot be read; invalid bytes are damage, not an error.
using ScanFile = std::function<Result<void>(const File& file, ContainerIndex& out,
                                            const std::function<void(uint64_t)>& passed)>;

// The cached index, or a new one made with `scan`. `kind` contains format, version and all
// parameters that affect the scan. Throws Exception: storage errors, what `progress` throws.
ContainerIndex index_of(std::string_view kind, const FileSet& files, const ScanFile& scan,
                        const Progress& progress,
                        const CacheDirectory& cache = CacheDirectory::of_user());

// Serializes an index, and the inverse. Parsed as hostile input: the result is either an index
// whose records are inside the files, or empty.
std::vector<uint8_t> bytes_from_index(const ContainerIndex& index, std::string_view kind,
                                      const FileSet& files);
// With an `owner`, which keeps the bytes valid, the index borrows from them instead of copying.
std::optional<ContainerIndex> index_from_bytes(std::span<const uint8_t> bytes,
                                               std::string_view kind, const FileSet& files,
                                               std::shared_ptr<const void> owner = nullptr);
std::string container_index_name(std::string_view kind, const FileSet& files);

// --- The sidecar (index_sidecar.cc) ---
// A container's index stored next to remote data, for all machines that open it: an object in the
// folder ".headrace" below the files' folder. Its name is derived from the files and their
// versions, so that an index of other versions is never found; its contents are validated like
// those of a cached index. Only `headrace index` writes it.

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
