// SPDX-License-Identifier: Apache-2.0
// A format: opens one kind of container as a source. Each format is a folder of code that registers
// a FormatRecord, so that open_source() recognizes its paths.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/parameters.h"
#include "headrace/sources/source.h"

namespace headrace {

struct FormatRecord {
  std::string_view name;  // "folder"
  std::string_view doc;
  std::string_view example;  // one line of Python
  std::vector<Param> params;
  std::function<bool(const std::string& path)> recognizes;  // cheap: a stat, a few bytes
  std::function<SourcePtr(const std::string& path, const Arguments& arguments,
                          const Progress& progress)>
      open;
  bool general = false;      // tried last: it accepts files that no other format claims
  bool shards = false;       // opens several files as one (shard_files.h)
  bool knows_kinds = false;  // the file states which images are masks
  // The suffix of files whose index is at their end: their last bytes are requested first.
  std::string_view index_at_end = {};
  bool plugged = false;  // from a plug-in; tried after all others
};

// Opens by content, or by the format given in arguments["format"]; arguments["kinds"] is as for
// kinds_from() in sources/field_kinds.h. Throws Exception: HR0401 if no format recognizes the path,
// HR0402 if it does not exist.
SourcePtr open_source(const std::string& path,
                      const std::map<std::string, ParamValue>& arguments = {},
                      const Progress& progress = {});

}  // namespace headrace
