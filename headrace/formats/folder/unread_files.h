// SPDX-License-Identifier: Apache-2.0
// What lies in a folder of pictures and is not read with it: tables, annotations beside each
// picture, masks among the pictures. Here it is decided whether that is an error or a word, and
// what to write instead.
#pragma once

#include <string>
#include <vector>

#include "headrace/formats/folder/folder_listing.h"

namespace headrace {

// Throws Exception HR1401 where the folder's only folder would be its only class although a table
// says what its files are.
void refuse_class_beside_table(const std::string& root, const FolderListing& listing,
                               const std::string& only);

// Warnings for the user who opens the folder; a sentence each.
std::vector<std::string> cautions_of_unread(const std::string& root, const FolderListing& listing);

// What to write for a folder without pictures whose files are containers of a format that opens
// one at a time (train.npz, val.npz); empty where it has none.
std::string advice_for_containers(const std::string& root);

// What to write to read the tables or annotations that belong to folders of splits; empty where
// there are none. `folders`: all in the folder `place` of the root, not yet listed themselves.
std::string advice_for_splits(const std::string& root, const std::string& place,
                              const FolderListing& listing, const std::vector<std::string>& folders,
                              const std::vector<std::string>& splits);

}  // namespace headrace
