// SPDX-License-Identifier: Apache-2.0
// Files that a dataset refers to, and which of them may be read.
//
// Names in data (annotations, tables) come from the author of the data: an absolute name, or one
// with "..", could cause any file of the machine to be read, so it is rejected unless
// outside=True is given.
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

// Whether a name stays below the folder that it is relative to.
bool stays_inside(std::string_view name);

// `outside=`, of formats whose data names files.
Param outside_param();
// Throws Exception HR0276 with the number of names that do not stay inside. `file`: contains the
// names.
void refuse_outside(const NameList& names, const std::string& file);

// Whether a file does not lie below the folder that its source belongs to (Source::root()).
bool lies_outside(const std::string& path, const std::string& root);
// How many records of a source are such files.
int64_t files_outside(const Source& source);

// read_file_field() of media (fields/media.h): what lies outside of `root`, by its name or
// by a link, and does not begin as such a file does is an error of the record, HR0278.
void read_named_picture(const std::string& path, const std::string& root, int64_t record,
                        size_t field, size_t buffer, RecordData& out, bool shared = false);

}  // namespace headrace
