// SPDX-License-Identifier: Apache-2.0
// The pictures of COCO annotations as records.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/formats/coco/coco_annotations.h"
#include "headrace/sources/source.h"
#include "headrace/storage/file.h"

namespace headrace {

// The fields beside those that every set of annotations has.
struct CocoWanted {
  bool masks = false, captions = false;
  int64_t keypoints = 0;  // points of each
  BoxFormat box_format = BoxFormat::kXYXY;
  bool keep_category_ids = false;
  bool check_sizes = true;
};

// `folder`: of the pictures, with its slash; empty: the current one.
SourcePtr coco_source(File file, CocoAnnotations data, std::string folder,
                      const CocoWanted& wanted);

}  // namespace headrace
