// SPDX-License-Identifier: Apache-2.0
// Where unpacking writes: files below one folder, and never outside of it.
//
// A file appears whole, under its name, or not at all. Thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "headrace/base/mutex.h"

namespace headrace {

// Why a key cannot be a path below a folder ("it begins with /"); empty when it can.
std::string what_leads_out(std::string_view key);

class OutputFolder {
 public:
  // Makes the folder, and those above it. Throws Exception HR0447.
  OutputFolder(std::string path, bool overwrite);

  // True when it was written, false when just these bytes stood there already. Throws Exception
  // HR0447, HR0450 when a link stands in the way, HR0451 when another file does.
  // REQUIRES: what_leads_out(name) is empty.
  bool write(std::string_view name, std::span<const uint8_t> bytes);
  // A fresh name in the folder for a file that is written piece by piece, and its end: it takes
  // its name as write() does.
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

}  // namespace headrace
