// SPDX-License-Identifier: Apache-2.0
// Folders and files that are splits of a dataset (train, val, test): they are not classes, and are
// not opened together.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

inline constexpr std::array<std::string_view, 9> kSplitNames = {
    "train", "training", "val", "valid", "validation", "validating", "test", "testing", "dev"};

// "train", "Validation", "val2017", "test-1".
bool is_split_name(std::string_view folder);

// The split in a name, as one of its words: "seg_train" is {train, seg}, "val2017" {val, ""},
// "test-00000-of-00002" {test, of}. Empty if no word is a split, or if there are two different
// splits.
struct SplitWord {
  std::string_view split;  // train, val or test
  std::string rest;        // the other words
};
std::optional<SplitWord> split_word(std::string_view name);
// Folders that differ only in the split's name: train and val, seg_train and seg_test.
std::vector<std::string> folders_of_splits(const std::vector<std::string>& names);

// Throws Exception HR0405 if files of a folder, which would be opened as one dataset, belong to two
// splits; it suggests a pattern for each. `files`: their paths.
void refuse_mixed_splits(const std::string& folder, const std::vector<std::string>& files);
// The files whose names contain the split ("train", "validation").
std::vector<std::string> files_of_split(const std::string& folder,
                                        const std::vector<std::string>& files,
                                        const std::string& split);

// Throws Exception HR0405, which suggests what to open instead. `splits`: their names in `folder`.
// `may_be_classes`: suggests classes= in case they are not splits. `annotations`: code that reads
// the annotations of the splits.
[[noreturn]] void raise_splits(const std::string& folder, const std::vector<std::string>& splits,
                               bool may_be_classes, const std::string& annotations = {});

}  // namespace headrace
