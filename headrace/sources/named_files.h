// SPDX-License-Identifier: Apache-2.0
// Files that a dataset refers to, and which of them may be read.
//
// Names in data (annotations, tables) come from the author of the dataset: an absolute name, or one
// with "..", could cause any file of the machine to be read, so it is rejected unless
// allow_outside=True is given. Lists and manifests are written by their users and may refer to any
// file, but files outside of the list's folder must be images, audio or video. The same applies to
// targets of links: users link whole datasets into place, and an archive may contain links.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/parameters.h"
#include "headrace/sources/name_list.h"
#include "headrace/sources/source.h"

namespace headrace {

// Whether a name refers to a file below the folder that it is relative to.
bool stays_inside(std::string_view name);

// `allow_outside=`, for formats whose data refers to files.
Param outside_param();
// Throws Exception HR0276, with the number of names that lead outside, if there are any. `file`:
// the file that contains the names.
void refuse_outside(const NameList& names, const std::string& file);

// Whether a file is outside of the folder that its source belongs to (Source::root()).
bool lies_outside(const std::string& path, const std::string& root);
// The number of records of a source that are such files.
int64_t files_outside(const Source& source);

// read_file_field() for media (fields/media.h). A file outside of `root`, by its name or by a link,
// whose first bytes do not look like a media file is an error of the record, HR0278.
void read_named_picture(const std::string& path, const std::string& root, int64_t record,
                        size_t field, size_t buffer, RecordData& out, bool shared = false);

}  // namespace headrace
