// SPDX-License-Identifier: Apache-2.0
// The images of a packed row as one value: a description of each image, then the images' encoded
// bytes. The value is the field `images` of packed rows, which EachImage reads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"

namespace headrace {

// One image of a row.
struct RowImage {
  std::span<const uint8_t> bytes;  // encoded
  int64_t height = 0, width = 0;   // from its header when the rows were made
  int64_t parts = 0;               // ImageForm::parts
  int64_t document = 0;            // the document that it belongs to
};

// Collects the images of the row's documents. REQUIRES: the added bytes outlive this object.
class RowImages {
 public:
  // Adds the image fields of one document (samples.h) whose tokens begin at `at`.
  void add(int64_t at, std::span<const uint8_t> bytes, std::span<const uint8_t> positions,
           std::span<const uint8_t> sizes, std::span<const uint8_t> entries);
  int64_t count() const { return static_cast<int64_t>(positions_.size()); }
  void write(Buffer& out) const;
  void write_positions(Buffer& out) const;
  void write_sizes(Buffer& out) const;

 private:
  std::vector<int64_t> positions_, sizes_, entries_;
  std::vector<std::span<const uint8_t>> encoded_;
  size_t bytes_ = 0;
};

// Parses what RowImages::write() wrote. HR1458 if the value is invalid.
Result<std::vector<RowImage>> row_images_from(std::span<const uint8_t> value);

}  // namespace headrace
