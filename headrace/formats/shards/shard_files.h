// SPDX-License-Identifier: Apache-2.0
// Expands a path to files, for containers that may consist of many files ("shards").
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// In this order:
// - several lines: each line separately;
// - braces, as in WebDataset: "train-{0000..0146}.tar" (also {a,b}); all of the files must exist;
// - shell wildcards (*, ?, [0-9], not across '/'): the existing files, sorted; if no file matches,
// the folders, because a container may be a folder;
// - a folder: the files directly in it whose names end with one of `suffixes`, sorted; if there are
//   none, those in its subfolder data/. Files of several splits (train-*, val-*) are rejected;
// - anything else: the path itself.
// Names are sorted as text, which is why shards are numbered with leading zeros; numbers without
// leading zeros are compared as numbers, so "part-10" comes after "part-9". Throws Exception:
// HR0402 if nothing is found, HR0413 for an invalid pattern, HR0405 for several splits.
std::vector<std::string> shard_files(const std::string& path,
                                     const std::vector<std::string_view>& suffixes = {});

// Whether shard_files() does more than return the path unchanged.
bool is_shard_pattern(std::string_view path);

// For a folder with several splits, the files of one of them. HR0405 if there are none.
std::vector<std::string> shard_files_of_split(const std::string& path,
                                              const std::vector<std::string_view>& suffixes,
                                              const std::string& split);

// Whether the path is a folder without subfolders, with files that have one of the suffixes; or one
// whose only subfolder is such a folder named data/. Throws Exception if it cannot be listed.
bool is_shard_folder(const std::string& path, const std::vector<std::string_view>& suffixes);

// Whether a sharded format recognizes the path: a folder of shards, or a file that is_shard
// accepts.
bool is_shard_path(const std::string& path, const std::vector<std::string_view>& suffixes,
                   bool (*is_shard)(const std::string& file));

}  // namespace headrace
