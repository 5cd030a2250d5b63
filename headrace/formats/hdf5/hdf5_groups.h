// SPDX-License-Identifier: Apache-2.0
// The names in an HDF5 group, and the objects of a file by their paths.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "headrace/formats/hdf5/hdf5_object.h"

namespace headrace {

struct Hdf5Link {
  enum class Kind : uint8_t { kHard, kSoft, kExternal };
  std::string name;
  Kind kind = Kind::kHard;
  uint64_t address = kHdf5Undefined;  // kHard: address of the object
  std::string target = {};            // kSoft: a path; kExternal: file and path, for messages
};

// All links of a group, sorted by name; empty if the object is not a group. Throws Exception.
std::vector<Hdf5Link> hdf5_links(const Hdf5File& file, const Hdf5Object& object);
bool is_hdf5_group(const Hdf5Object& object);

// For one thread; caches visited groups.
class Hdf5Directory {
 public:
  struct Entry {
    std::string path;  // "/train/images"
    uint64_t address = kHdf5Undefined;
  };
  struct Listing {
    std::vector<Entry> datasets;  // each once, with its first path
    std::vector<Entry> outside;   // external links; `path` includes the target
  };

  explicit Hdf5Directory(const Hdf5File& file) : file_(file) {}
  // Every dataset under the root. Soft links are not followed, because their targets are found
  // anyway. Throws Exception.
  Listing list();
  // The object at a path; soft links inside the file are followed. kHdf5Undefined: not found.
  // Throws Exception: HR0494 if it links to another file.
  uint64_t find(const std::string& path);

 private:
  const std::vector<Hdf5Link>& links_of(uint64_t address);

  const Hdf5File& file_;
  std::map<uint64_t, std::vector<Hdf5Link>> groups_;
};

}  // namespace headrace
