// SPDX-License-Identifier: Apache-2.0
// Classes by folder, for archives of pictures: as a folder of pictures has them.
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

  // Label of a sample, by its key.
  std::optional<int64_t> label_of(std::string_view key, const ClassList& list) const;
};

// From the folders that samples lie in. Nothing where those are not classes: only one, samples
// beside them, or the parts of a dataset (train, val, test). With classes given, folders that have
// their names are them.
std::optional<WdsFolders> class_folders(const std::map<std::string, int64_t>& folders,
                                        const ClassList* given);

}  // namespace headrace
