// SPDX-License-Identifier: Apache-2.0
// Names of files in a folder that belong to its records: tables, text next to each picture, masks
// next to each picture. Only inspects names; opens nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "headrace/formats/folder/folder_listing.h"

namespace headrace {

// The names of a folder's pictures, sorted by bytes, by number.
using SortedNames = std::function<std::string_view(int64_t)>;

// Whether a file of that name may describe records: train.csv, labels.mat, not README.
bool may_be_annotations(std::string_view name);

// Adds a file to the unread files; `folder` is its folder's path from the root. REQUIRES:
// may_be_annotations(name).
void add_unread(std::string_view folder, std::string_view name, int64_t count,
                const SortedNames& pictures, UnreadFiles& out);

// Counts the pictures of a folder that are named as masks of others in it.
void count_masks(std::string_view folder, int64_t count, const SortedNames& pictures,
                 UnreadFiles& out);

}  // namespace headrace
