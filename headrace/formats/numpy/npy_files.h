// SPDX-License-Identifier: Apache-2.0
// A folder of .npy files as a source: either one record per file, with a class if the files are in
// class folders, or one field per file, with one row per record.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/formats/numpy/npy_array.h"
#include "headrace/sources/classes.h"
#include "headrace/sources/name_list.h"
#include "headrace/sources/source.h"

namespace headrace {

struct NpyFolder {
  NameList paths;               // full paths, in record order
  std::vector<int64_t> labels;  // one per file if the files are in class folders; otherwise empty
  ClassList classes;
};

// The .npy files directly in the folder, sorted; if there are none, those in its subfolders, whose
// names are then the classes. Names that begin with a dot are ignored.
NpyFolder list_npy_folder(const std::string& path, const std::optional<ClassList>& classes);

// Whether one of the first names is a .npy and none is an image. Cheap.
bool is_npy_folder(const std::string& path);

// The header of a file. Throws Exception.
NpyHeader npy_header_of(const std::string& path);

// One record per file. `channels`: see array_columns.h. Throws Exception HR0424 if types differ,
// HR0425.
SourcePtr npy_files(const std::string& path, NpyFolder folder, const std::string& channels,
                    const Progress& progress);

}  // namespace headrace
