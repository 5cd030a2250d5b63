// SPDX-License-Identifier: Apache-2.0
// The output of unpacking: files and their manifest, in one folder and never outside of it.
//
// Files appear atomically. Thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/formats/pack/pack_summary.h"
#include "headrace/sources/schema.h"

namespace headrace {

// Why a key cannot be a path below a folder ("it begins with /"); empty if it can.
std::string why_unsafe_key(std::string_view key);

class OutputFolder {
 public:
  // Creates the folder and its parents. Throws Exception HR0447.
  OutputFolder(std::string path, bool overwrite);

  // Writes a file. False if it already exists with the same bytes. Throws Exception HR0447, HR0450
  // if a link is in the way, HR0451 if a different file is. REQUIRES: why_unsafe_key(name) is
  // empty.
  bool write(std::string_view name, std::span<const uint8_t> bytes);
  // For files that are written incrementally: temporary_name() returns a path in the folder, and
  // move_in() renames that file, like write().
  std::string temporary_name();
  bool move_in(const std::string& temporary, std::string_view name);
  // Throws Exception HR0450.
  [[noreturn]] static void refuse(std::string_view name, const std::string& what);

 private:
  void make_folders(std::string_view name) EXCLUDES_LOCK(mutex_);
  void clear_leftovers() const;

  const std::string path_;
  const bool overwrite_;
  Mutex mutex_;
  std::set<std::string, std::less<>> folders_ GUARDED_BY(mutex_);  // known to exist
};

// --- Output other than media files (pack_manifest.cc): a line of JSON per record, and arrays as
// .npy files (NumPy's format 1.0) ---

// Whether the unpacked files alone, opened as a folder, give the same records in the same order
// with the same labels, so that no manifest is needed.
bool folders_suffice(const OpenedPack& pack);

// The header of a .npy file whose array has this shape.
std::vector<uint8_t> npy_header(DType dtype, const Shape& shape);

}  // namespace headrace
