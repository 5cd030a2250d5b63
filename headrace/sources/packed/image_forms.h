// SPDX-License-Identifier: Apache-2.0
// Computes how many patches and tokens the images of documents become, from the sizes in their
// headers.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// What an image becomes.
struct ImageForm {
  int64_t height = 0, width = 0;  // pixels after the transforms
  int64_t parts = 0;              // rows in the output tensor: its patches, or 1
  int64_t tokens = 0;             // in the token sequence
};
// The form of an image of this size. The error states why such an image cannot be used.
using ImageRule = std::function<Result<ImageForm>(int64_t height, int64_t width)>;

struct SampleOptions;  // samples.h

// One per document and field of options.images; 0 tokens if there is no image. Increases `lengths`
// of documents by the tokens that images have beyond their placeholders, and sets the lengths of
// dropped documents to 0. Throws Exception HR1454 for an image that cannot be used.
std::vector<ImageForm> image_forms(const Source& source, const SampleOptions& options,
                                   std::vector<int64_t>& lengths);

}  // namespace headrace
