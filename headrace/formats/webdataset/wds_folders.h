// SPDX-License-Identifier: Apache-2.0
// Classes by folder, for archives of images, as for a folder of images.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/sources/classes.h"

namespace headrace {

struct WdsFolders {
  std::string above;                 // "data/train/": the parent of the class folders
  std::vector<std::string> classes;  // in any order, with duplicates

  // The label of a sample, from its key.
  std::optional<int64_t> label_of(std::string_view key, const ClassList& list) const;
};

// Classes from the samples' folders. Empty if the folders are not classes: there is only one, there
// are samples next to them, or they are splits (train, val, test). If classes are given, folders
// with their names are the classes.
std::optional<WdsFolders> class_folders(const std::map<std::string, int64_t>& folders,
                                        const ClassList* given);

}  // namespace headrace
