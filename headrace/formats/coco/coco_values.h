// SPDX-License-Identifier: Apache-2.0
// The parts of COCO annotations that stay in their file until a record is read: segmentations (as
// masks), keypoints, captions. Thread-safe; the caller owns the buffers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/base/json_reader.h"
#include "headrace/formats/coco/coco.h"
#include "headrace/formats/coco/coco_masks.h"
#include "headrace/storage/file.h"

namespace headrace {

class CocoValues {
 public:
  // The caller owns the file.
  explicit CocoValues(const File& file) : file_(file) {}

  // (rows, height, width) uint8, 1 inside of the object. HR0435 if a row cannot be drawn.
  Result<void> masks(std::span<const JsonRange> rows, int64_t height, int64_t width,
                     size_t max_bytes, Buffer& out) const;
  // (rows, points, 3) float32: x, y, visibility; rows without points get zeros, which mean "not
  // labeled".
  Result<void> keypoints(std::span<const JsonRange> rows, int64_t points, size_t max_bytes,
                         Buffer& out) const;
  Result<void> caption(std::span<const JsonRange> rows,
                       Buffer& out) const;  // the first; "" if none
  Result<void> captions(std::span<const JsonRange> rows, Buffer& out) const;  // all, as a JSON list
  // The number of numbers in a list.
  Result<int64_t> count_numbers(const JsonRange& range) const;

 private:
  struct Scratch {
    Buffer text;
    std::vector<double> xy;
    std::vector<int64_t> runs;
    std::string code;
  };
  // Reads the range's text and starts `json` on it.
  Result<void> load(const JsonRange& range, Buffer& text, JsonReader& json) const;
  Result<void> draw(const JsonRange& range, CocoMaskPainter& painter, std::span<uint8_t> plane,
                    Scratch& scratch) const;
  Result<void> captions_into(std::span<const JsonRange> rows, bool all, Buffer& out) const;
  Error bad(std::string what, const JsonRange& range) const;

  const File& file_;
};

}  // namespace headrace
