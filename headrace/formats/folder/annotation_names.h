// SPDX-License-Identifier: Apache-2.0
// Recognizes files in a folder that describe its records: tables, text next to each image, masks
// next to each image. Only inspects names; opens nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "headrace/formats/folder/folder_listing.h"

namespace headrace {

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
