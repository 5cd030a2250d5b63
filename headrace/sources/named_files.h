// SPDX-License-Identifier: Apache-2.0
// Files that a dataset refers to, and which of them may be read.
//
// Names in data (annotations, tables) come from the author of the data: one that is absolute or has
// ".." in it would have any file of the machine read, so it is refused unless outside=True is said.
// Lists and manifests are written by their users, and may name any file; but what lies outside of
// the list's folder must be a picture, a sound or a video. So must what a link leads to: people
// link whole datasets into place, and an archive may bring a link of its own.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/parameters.h"
#include "headrace/sources/name_list.h"
#include "headrace/sources/source.h"

namespace headrace {

// Whether a name leads to no place but below the folder that it is relative to.
bool stays_inside(std::string_view name);

// `outside=`, of formats whose data names files.
Param outside_param();
// Throws Exception HR0276 when names do not stay inside; it says how many. `file`: where they
// stand.
void refuse_outside(const NameList& names, const std::string& file);

// Whether a file does not lie below the folder that its source belongs to (Source::root()).
bool lies_outside(const std::string& path, const std::string& root);
// How many records of a source are such files.
int64_t files_outside(const Source& source);

// read_file_field() of media (fields/media.h): what lies outside of `root`, by its name or
// by a link, and does not begin as such a file does is an error of the record, HR0278.
void read_named_picture(const std::string& path, const std::string& root, int64_t record,
                        size_t field, size_t buffer, RecordData& out);

}  // namespace headrace
