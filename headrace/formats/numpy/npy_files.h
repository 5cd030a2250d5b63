// SPDX-License-Identifier: Apache-2.0
// A folder of .npy files as a source: one record per file, with a class if they are in class
// folders; or one field per file, each with all records.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/formats/numpy/npy_header.h"
#include "headrace/sources/classes.h"
#include "headrace/sources/name_list.h"
#include "headrace/sources/source.h"

namespace headrace {

struct NpyFolder {
  NameList paths;               // full, in the order of records
  std::vector<int64_t> labels;  // as many, where the files lie in class folders; else empty
  ClassList classes;
};

// The .npy files directly in the folder, sorted; where there are none, those directly in its
// folders, which are the classes then. Names that begin with a dot are left out.
NpyFolder list_npy_folder(const std::string& path, const std::optional<ClassList>& classes);

// Cheap: whether one of the first names is a .npy's and none is a picture's.
bool is_npy_folder(const std::string& path);

// The header of a file. Throws Exception.
NpyHeader npy_header_of(const std::string& path);

// One record a file. `channels`: as array_columns.h has it. Throws Exception HR0424 where types
// differ, HR0425.
SourcePtr npy_files(const std::string& path, NpyFolder folder, const std::string& channels,
                    const Progress& progress);

}  // namespace headrace
