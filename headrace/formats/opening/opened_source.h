// SPDX-License-Identifier: Apache-2.0
// Result of open_source(): a format's source, and how it was opened.
//
// Note [Identity of a source]: whatever keeps records or facts about them (cache=, the lengths of
// audio, resume states) must know whether a source is the one that they belong to. Two values
// identify it:
// - fingerprint(), stored in resume states: equal for a copy of the dataset on another machine. It
//   combines the format's own fingerprint with every argument that affects records.
// - identity(), for this process: the format, every argument, and the files at the path, by their
//   absolute names, sizes and times. Two sources that were opened in the same way share a cache.
// Both are made here, from the tables of parameters, so that no format can forget one. A source
// that was not opened (in memory, concat, join, other kinds) is its own identity.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headrace/formats/format.h"

namespace headrace {

// The absolute path; for a pattern or several lines likewise. The meaning of a relative path must
// not change with the process's current folder after a source was opened.
std::string path_from_root(const std::string& path);

// The arguments, with absolute paths for parameters that are paths.
std::map<std::string, ParamValue> with_places_from_root(const FormatRecord& format,
                                                        std::map<std::string, ParamValue> given);

// `kinds`: as given. REQUIRES: `path` is absolute.
SourcePtr opened_source(SourcePtr source, const FormatRecord& format, const std::string& path,
                        const Arguments& arguments, const std::vector<std::string>& kinds);

}  // namespace headrace
