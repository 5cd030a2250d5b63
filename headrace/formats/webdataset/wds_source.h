// SPDX-License-Identifier: Apache-2.0
// The source of WebDataset archives: one record per sample.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/formats/shards/container_index.h"
#include "headrace/formats/webdataset/wds_fields.h"
#include "headrace/sources/classes.h"
#include "headrace/sources/source.h"
#include "headrace/storage/file_set.h"

namespace headrace {

// Classes by folder, for archives of images, as for a folder of images (wds_folders.cc).
struct WdsFolders {
  std::string above;                 // "data/train/": the parent of the class folders
  std::vector<std::string> classes;  // in any order, with duplicates

  // The label of a sample, from its key.
  std::optional<int64_t> label_of(std::string_view key, const ClassList& list) const;
};

// Classes from the samples' folders. Empty if the folders are not classes: there is only one, there
// are samples next to them, or they are splits (train, val, test). If classes are given, folders
// with their names are the classes.
std::optional<WdsFolders> class_folders(const std::map<std::string, int64_t>& folders,
                                        const ClassList* given);

// What to do with a sample that lacks a field.
enum class WdsMissing : uint8_t { kError, kSkip, kEmpty };

struct WdsOptions {
  std::string path;
  std::vector<WdsField> fields;
  std::vector<std::string> notes;  // for the description
  WdsMissing missing = WdsMissing::kError;
  ClassList classes;
  WdsFolders folders;
};

SourcePtr webdataset_source(std::unique_ptr<FileSet> files, ContainerIndex index,
                            WdsOptions options);

}  // namespace headrace
