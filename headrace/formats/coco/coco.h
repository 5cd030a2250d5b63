// SPDX-License-Identifier: Apache-2.0
// COCO annotations: the file as columns, and the source of its records.
//
// Images are in the order of their ids, and the rows (annotations) of an image in file order. Long
// and rarely used values (segmentations, keypoints, captions) stay in the file; the columns store
// their offsets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/sources/name_list.h"
#include "headrace/sources/source.h"
#include "headrace/storage/file.h"

namespace headrace {

extern const ErrorCode kMalformedCoco;  // HR0433
extern const ErrorCode kCocoMismatch;   // HR0434
extern const ErrorCode kBadCocoRecord;  // HR0435

// A value in the file. Empty: not present.
struct JsonRange {
  uint64_t offset = 0;
  uint32_t bytes = 0;
};

struct CocoOptions {
  bool keep_category_ids = false;
  bool skip_empty = false, skip_crowd = false, drop_orphans = false;
  double min_size = 0, min_area = 0;
};

// One annotation, before it is assigned to its image.
struct CocoRow {
  int64_t image_id = 0, category_id = 0;
  float box[4] = {};  // x, y, width, height
  float area = 0;
  uint8_t crowd = 0;
  bool has_box = false, has_category = false, has_area = false;
  JsonRange segmentation, keypoints, caption;
  uint64_t offset = 0;  // of the annotation
};

struct CocoImage {
  int64_t id = 0;
  int32_t width = 0, height = 0;  // 0: not specified
};

struct CocoCategory {
  int64_t id = 0;
  std::string name;
  int64_t keypoints = 0;
};

// The first error in an image's annotations.
struct CocoProblem {
  int64_t image = 0;  // its index
  std::string what;
  uint64_t offset = 0;
};

struct CocoAnnotations {
  std::vector<CocoImage> images;  // by id
  NameList file_names;
  std::vector<CocoCategory> categories;  // by id

  // The rows of image i are [row_begins[i], row_begins[i + 1]).
  std::vector<uint32_t> row_begins;
  std::vector<float> boxes;  // four per row, as in the file
  std::vector<int64_t> labels;
  std::vector<float> areas;
  std::vector<uint8_t> crowd;
  std::vector<JsonRange> segmentations, keypoints;  // empty if no row has one

  std::vector<uint32_t> caption_begins;
  std::vector<JsonRange> captions;

  std::vector<CocoProblem> problems;  // sorted by image
  bool has_boxes = false;
  int64_t orphans = 0;    // skipped annotations of images that are not listed
  int64_t over_edge = 0;  // boxes that extend beyond their image by more than half a pixel

  const CocoProblem* problem_of(int64_t image) const;
};

// Throws Exception: HR0433 for invalid JSON or a structure other than COCO's, with its offset;
// HR0434 for contradictions; storage errors.
CocoAnnotations read_coco(const File& file, const CocoOptions& options, const Progress& progress);

// Whether the text, the beginning of a file, looks like COCO annotations.
bool looks_like_coco(std::string_view text);

// The lists of a COCO file as parsed, and their conversion to records.
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

// --- The source of COCO annotations: one record per image ---

// The fields in addition to those that all annotations have.
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
