// SPDX-License-Identifier: Apache-2.0
// The files of a path, where a container may be many files ("shards").
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// In this order:
// - lines, where it has several: each on its own;
// - braces, as WebDataset writes them: "train-{0000..0146}.tar" (also {a,b}), every one of which
//   must be there;
// - wildcards, as the shell knows them (*, ?, [0-9], not across '/'): the files that are there,
//   sorted; where they fit no file, the folders, since a container may be one;
// - a folder: the files directly in it whose names end with one of `suffixes`, sorted; where it has
//   none, those in its folder data/. Files of several splits (train-*, val-*) are refused;
// - anything else: itself.
// Names with digits are sorted as text, which is why shards are numbered with leading zeros; where
// they are not, "part-10" comes after "part-9" all the same. Throws Exception: HR0402 nothing
// there, HR0413 a pattern that makes no sense, HR0405 several splits.
std::vector<std::string> shard_files(const std::string& path,
                                     const std::vector<std::string_view>& suffixes = {});

// Whether shard_files() would do more than to take the path as it is.
bool is_shard_pattern(std::string_view path);

// For a folder of several splits, the files that are named for one. HR0405 if there are none.
std::vector<std::string> shard_files_of_split(const std::string& path,
                                              const std::vector<std::string_view>& suffixes,
                                              const std::string& split);

// Whether it is a folder in which files with one of the suffixes lie, and no folder; or one whose
// only folder is data/, and such a one. Throws Exception when it cannot be listed.
bool is_shard_folder(const std::string& path, const std::vector<std::string_view>& suffixes);

// Whether a format of shards recognizes the path: a folder of them, or a file that is_shard takes.
bool is_shard_path(const std::string& path, const std::vector<std::string_view>& suffixes,
                   bool (*is_shard)(const std::string& file));

}  // namespace headrace
