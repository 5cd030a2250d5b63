// SPDX-License-Identifier: Apache-2.0
// The index of a container: the position of each record, found by scanning its files once, on all
// cores, and kept in the user's cache as long as the files do not change, or next to the data
// (index_beside_data.h). A large one is mapped from there, so that the processes of a machine hold
// it once.
//
// Data that a scan cannot read is not lost: from where a file makes no sense to its end is one
// record, which is bad when it is read, so that on_error decides and len() shows it.
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

#include "headrace/base/error.h"
#include "headrace/formats/shards/extents.h"
#include "headrace/sources/source.h"
#include "headrace/storage/cache_directory.h"
#include "headrace/storage/file_set.h"

namespace headrace {

// Why a record is bad without being read.
struct Damage {
  int64_t record = 0;
  uint64_t offset = 0;  // in its file
  std::string code;     // of a registered ErrorCode
  std::string what;
  std::string hint;
};

struct ContainerIndex {
  Extents records;
  std::vector<Damage> damage;              // by record
  std::map<std::string, int64_t> tallies;  // whatever the format counts, by name: "jpg" -> 1000
  std::string kind;                        // as in index_of()

  bool is_damaged(int64_t record) const {
    return std::ranges::binary_search(damage, record, {}, &Damage::record);
  }
  // Whether more places of the file at hand are damaged than are worth to be listed: then all that
  // follows is one more, and the list takes a small part of the file's size.
  bool is_full_of_damage(const File& file) const {
    constexpr uint64_t kAlways = 1000, kBytesAPlace = 4096;
    return damage.size() >= kAlways + file.size() / kBytesAPlace;
  }
  // Ends the file at hand with a record that reaches to its end and is bad.
  void add_damage(const File& file, uint64_t offset, const ErrorCode& code, std::string what,
                  std::string hint = {});
};

// Looks through one file: adds its records to `out`, in order, without end_file(). Calls `passed`
// now and then with the offset that it has reached; that throws when the scan is to end. Returns a
// storage error when bytes cannot be had; bytes that make no sense are damage, no error.
using ScanFile = std::function<Result<void>(const File& file, ContainerIndex& out,
                                            const std::function<void(uint64_t)>& passed)>;

// The kept index, or one made by `scan`. `kind` names format, version and whatever parameters
// change what the scan finds. Throws Exception: storage errors, what `progress` throws.
ContainerIndex index_of(std::string_view kind, const FileSet& files, const ScanFile& scan,
                        const Progress& progress,
                        const CacheDirectory& cache = CacheDirectory::of_user());

// The kept form. Parsed as hostile input: whatever it holds, the result is an index whose records
// lie inside the files, or none.
std::vector<uint8_t> bytes_from_index(const ContainerIndex& index, std::string_view kind,
                                      const FileSet& files);
// With an `owner`, which keeps the bytes where they are, the records are borrowed from them.
std::optional<ContainerIndex> index_from_bytes(std::span<const uint8_t> bytes,
                                               std::string_view kind, const FileSet& files,
                                               std::shared_ptr<const void> owner = nullptr);
std::string container_index_name(std::string_view kind, const FileSet& files);

}  // namespace headrace
