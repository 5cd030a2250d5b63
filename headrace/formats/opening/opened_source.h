// SPDX-License-Identifier: Apache-2.0
// Result of open_source(): a format's source, and how it was opened.
//
// Note [Identity of a source]: what keeps records or facts about them (cache=, the lengths of
// sounds, resume states) must know whether a source is the one that they are of. Two things answer:
// - fingerprint(), which stands in resume states: equal for a copy of the dataset on another
//   machine. It is the format's own, and every argument that decides what a record is.
// - identity(), of this process: the format, every argument, and the files at the path, by their
//   absolute names, sizes and times. Two sources that were opened in the same way share a cache.
// Both are made here, from the tables of parameters, so that no format can forget one. A source
// that was not opened (in memory, concat, join, other kinds) is its own identity.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headrace/formats/format.h"

namespace headrace {

// The path from the root on; a pattern or several lines likewise. What a relative path means must
// not change with the process's folder after a source was opened.
std::string path_from_root(const std::string& path);

// The arguments, with absolute paths where the format's parameters are places.
std::map<std::string, ParamValue> with_places_from_root(const FormatRecord& format,
                                                        std::map<std::string, ParamValue> given);

// `kinds`: as they were given. REQUIRES: `path` is absolute.
SourcePtr opened_source(SourcePtr source, const FormatRecord& format, const std::string& path,
                        const Arguments& arguments, const std::vector<std::string>& kinds);

}  // namespace headrace
