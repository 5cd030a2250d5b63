// SPDX-License-Identifier: Apache-2.0
// Files in a folder of images that are not read with it: tables, annotations next to each image,
// masks among the images. Recognizes them by their names, decides whether that is an error or a
// warning, and suggests code that reads them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/formats/folder/folder_listing.h"

namespace headrace {

// Throws Exception HR1401 if the folder's only subfolder would be its only class although a table
// describes its files.
void refuse_class_beside_table(const std::string& root, const FolderListing& listing,
                               const std::string& only);

// Warnings for the user who opens the folder, one sentence each.
std::vector<std::string> warnings_of_unread(const std::string& root, const FolderListing& listing);

// Suggested code for a folder without images whose files are single-file containers (train.npz,
// val.npz); empty if there are none.
std::string advice_for_containers(const std::string& root);

// Suggested code that reads the tables or annotations of split folders; empty if there are none.
// `folders`: all subfolders of `place` below the root, not listed yet.
std::string advice_for_splits(const std::string& root, const std::string& place,
                              const FolderListing& listing, const std::vector<std::string>& folders,
                              const std::vector<std::string>& splits);

// --- By names alone: opens nothing ---

// The i-th name of a folder's images, sorted by bytes.
using SortedNames = std::function<std::string_view(int64_t)>;

// Whether a file of that name may describe records: train.csv, labels.mat, not README.
bool may_be_annotations(std::string_view name);

// Adds a file to the unread files; `folder` is its folder's path from the root. REQUIRES:
// may_be_annotations(name).
void add_unread(std::string_view folder, std::string_view name, int64_t count,
                const SortedNames& pictures, UnreadFiles& out);

// Counts the images of a folder that are named as masks of others in it.
void count_masks(std::string_view folder, int64_t count, const SortedNames& pictures,
                 UnreadFiles& out);

}  // namespace headrace
