// SPDX-License-Identifier: Apache-2.0
// The source of COCO annotations: one record per image.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/formats/coco/coco_annotations.h"
#include "headrace/sources/source.h"
#include "headrace/storage/file.h"

namespace headrace {

// The fields to make in addition to those of every annotation, and the form of the values.
struct CocoWanted {
  bool masks = false, captions = false;
  int64_t keypoints = 0;  // points per row
  BoxFormat box_format = BoxFormat::kXYXY;
  bool keep_category_ids = false;
  bool check_sizes = true;
};

// `folder`: the folder of the images, with a final slash; empty: the current folder.
SourcePtr coco_source(File file, CocoAnnotations data, std::string folder,
                      const CocoWanted& wanted);

}  // namespace headrace
