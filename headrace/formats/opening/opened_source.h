// SPDX-License-Identifier: Apache-2.0
// The result of open_source(): a format's source, and how it was opened.
//
// Note [Identity of a source]: code that stores records or facts about them (cache=, the lengths of
// audio, resume states) must be able to tell whether they belong to a source. Two values identify a
// source:
// - fingerprint(), stored in resume states: equal for a copy of the dataset on another machine. It
//   combines the format's own fingerprint with every argument that affects records.
// - identity(), for this process: the format, every argument, and the absolute names, sizes and
//   times of the files at the path. Two sources that were opened in the same way share a cache.
// Both are computed here, from the tables of parameters, so that no format can forget a parameter.
// A source that was not opened by path (in memory, concat, join, other kinds) equals only itself.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headrace/formats/format.h"

namespace headrace {

// Makes a path absolute, also a pattern or several lines. A relative path must not change its
// meaning with the process's current folder after a source was opened.
std::string absolute_form(const std::string& path);

// The arguments, with absolute paths for parameters that are paths.
std::map<std::string, ParamValue> with_absolute_paths(const FormatRecord& format,
                                                      std::map<std::string, ParamValue> given);

// `kinds`: as given. REQUIRES: `path` is absolute.
SourcePtr opened_source(SourcePtr source, const FormatRecord& format, const std::string& path,
                        const Arguments& arguments, const std::vector<std::string>& kinds);

}  // namespace headrace
