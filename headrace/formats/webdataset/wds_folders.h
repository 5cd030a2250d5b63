// SPDX-License-Identifier: Apache-2.0
// Classes by folder, for archives of pictures, as for a folder of pictures.
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
  std::string above;                 // "data/train/", in which the class folders lie
  std::vector<std::string> classes;  // with repeats, in any order

  // Label of a sample, from its key.
  std::optional<int64_t> label_of(std::string_view key, const ClassList& list) const;
};

// Classes from the samples' folders. None if those are not classes: only one, samples next to them,
// or the splits of a dataset (train, val, test). If classes are given, folders with their names are
// the classes.
std::optional<WdsFolders> class_folders(const std::map<std::string, int64_t>& folders,
                                        const ClassList* given);

}  // namespace headrace
