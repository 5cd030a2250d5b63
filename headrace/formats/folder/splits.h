// SPDX-License-Identifier: Apache-2.0
// Folders that are parts of a dataset (train, val, test): they are no classes, and are not opened
// together.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

inline constexpr std::array<std::string_view, 9> kSplitNames = {
    "train", "training", "val", "valid", "validation", "validating", "test", "testing", "dev"};

// "train", "Validation", "val2017", "test-1".
bool is_split_name(std::string_view folder);

// Throws Exception HR0405, which says which to open instead. `splits`: their names in `folder`.
// `may_be_classes`: classes= could say that they are none.
[[noreturn]] void raise_splits(const std::string& folder, const std::vector<std::string>& splits,
                               bool may_be_classes);

}  // namespace headrace
