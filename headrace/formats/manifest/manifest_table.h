// SPDX-License-Identifier: Apache-2.0
// The text of a manifest as string columns: CSV (RFC 4180) with a header, or JSON lines.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/sources/name_list.h"
#include "headrace/sources/source.h"
#include "headrace/storage/file.h"

namespace headrace {

extern const ErrorCode kBadManifest;       // HR0437
extern const ErrorCode kBadManifestValue;  // HR0438

// Headings of the label column, in lower case; the most specific first.
inline constexpr std::array<std::string_view, 5> kLabelHeadings = {"label", "labels", "class",
                                                                   "target", "category"};

struct ManifestColumn {
  std::string name;
  NameList values;  // one per record; numbers as written
  // Types from JSON. CSV has none: `typed` is false, and the type is inferred from the text.
  bool typed = false;
  bool has_text = false, has_number = false, has_bool = false;
  std::vector<int64_t> missing;  // records without a value: an empty cell, null, or a missing key
};

struct ManifestTable {
  std::vector<ManifestColumn> columns;
  std::vector<int64_t> lines;  // first line of each record, from 1
};

// Throws Exception HR0437 with the line; storage errors. A key missing in some lines is rejected
// unless `allow_missing`.
ManifestTable read_csv(const File& file, const Progress& progress);
ManifestTable read_json_lines(const File& file, bool allow_missing, const Progress& progress);

[[noreturn]] void bad_manifest_line(const File& file, int64_t line, std::string what,
                                    std::string hint = {});

// Whether the text is UTF-16, judging by its byte order mark.
bool is_utf16(std::string_view head);

// Whether the beginning of a file looks like a CSV with a header of three or more columns, or of
// two columns of which the second is not a label: paths of masks, fractions, captions.
bool looks_like_csv_manifest(std::string_view head);

}  // namespace headrace
