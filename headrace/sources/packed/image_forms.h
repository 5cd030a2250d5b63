// SPDX-License-Identifier: Apache-2.0
// The results for the images of documents, determined by the sizes in their headers.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// What becomes of an image.
struct ImageForm {
  int64_t height = 0, width = 0;  // pixels after the transforms
  int64_t parts = 0;              // rows of the tensor that it becomes: its patches, or 1
  int64_t tokens = 0;             // in a sequence
};
// Errors say why an image of this size cannot be used.
using ImageRule = std::function<Result<ImageForm>(int64_t height, int64_t width)>;

struct SampleOptions;  // samples.h

// By document and field of options.images; with 0 tokens where there is no image. Adds to `lengths`
// of documents what images have more than their placeholders, and sets those of documents that are
// left out to 0. Throws Exception HR1454 for an image that cannot be used.
std::vector<ImageForm> image_forms(const Source& source, const SampleOptions& options,
                                   std::vector<int64_t>& lengths);

}  // namespace headrace
