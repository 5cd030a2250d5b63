// SPDX-License-Identifier: Apache-2.0
// Files in a folder of images that are not read with it: tables, annotations next to each image,
// masks among the images. Decides whether that is an error or a warning, and suggests code that
// reads them.
#pragma once

#include <string>
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

}  // namespace headrace
