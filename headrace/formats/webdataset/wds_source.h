// SPDX-License-Identifier: Apache-2.0
// The source of WebDataset archives: one record per sample.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headrace/formats/shards/container_index.h"
#include "headrace/formats/webdataset/wds_fields.h"
#include "headrace/formats/webdataset/wds_folders.h"
#include "headrace/sources/classes.h"
#include "headrace/sources/source.h"
#include "headrace/storage/file_set.h"

namespace headrace {

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
