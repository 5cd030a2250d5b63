// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/splits.h"

#include <algorithm>

#include "headrace/base/text.h"
#include "headrace/formats/folder/folder_listing.h"
#include "headrace/sources/wording.h"

namespace headrace {
namespace {

const ErrorCode kSplits{
    "HR0405", ErrorKind::kConfig, "folder of splits",
    "The folders in this folder are named train, val, test or the like, so they are parts of a "
    "dataset and no classes; opening them together would train on the validation set. Open one of "
    "them. If they really are classes, name them in classes=."};

}  // namespace

bool is_split_name(std::string_view folder) {
  std::string name = lower_case(folder);
  name.erase(name.find_last_not_of("0123456789-_") + 1);
  return std::ranges::find(kSplitNames, name) != kSplitNames.end();
}

void raise_splits(const std::string& folder, const std::vector<std::string>& splits,
                  bool may_be_classes) {
  std::string advice = "open " + joined(folder, splits[0]);
  for (size_t i = 1; i < splits.size() && i < 4; ++i) advice += ", or " + joined(folder, splits[i]);
  if (may_be_classes) advice += "; if they are classes, name them in classes=";
  raise(kSplits,
        "the folders in " + folder + " are parts of a dataset" +
            (may_be_classes ? ", not classes: " : ": ") + quoted_list(splits),
        advice);
}

}  // namespace headrace
