// SPDX-License-Identifier: Apache-2.0
// The lists of a COCO file as parsed, and their conversion to records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/formats/coco/coco_annotations.h"

namespace headrace {

struct CocoRows {
  struct Problem {
    size_t row;
    std::string what;
  };
  std::vector<CocoImage> images;
  std::vector<uint64_t> image_offsets;
  NameList file_names;
  std::vector<CocoCategory> categories;
  bool has_categories = false;
  std::vector<CocoRow> rows;
  std::vector<Problem> problems;  // by row
};

// Throws Exception HR0434.
CocoAnnotations join_coco(CocoRows rows, const CocoOptions& options, const std::string& path);

}  // namespace headrace
