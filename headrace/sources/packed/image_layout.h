// SPDX-License-Identifier: Apache-2.0
// Computes, from the sizes in image headers, how many patches and tokens the images of documents
// become, and their positions among the tokens after each placeholder is expanded to the number of
// tokens of its image.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "headrace/base/buffer.h"
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

// Elements [begin, begin + count) of a document, then `image_tokens` tokens of an image, which
// replace one placeholder; 0: no image follows, or its placeholders are among the elements.
struct Run {
  int64_t begin = 0, count = 0, image_tokens = 0;
};

struct ImageLayout {
  std::vector<Run> runs;
  std::vector<int64_t> positions;  // of each image's first token
  int64_t length = 0;              // in tokens
};

// `forms`: of the document's images, in order; empty if documents have none. `expand`: there is one
// placeholder per image, otherwise one per image token. Error HR1453, without the document.
Result<ImageLayout> image_layout(std::span<const int64_t> ids, std::span<const ImageForm> forms,
                                 int64_t placeholder, bool expand);

// Expands a document's values, of `item` bytes each, to the layout. All tokens of an image get
// `filler`, or if that is empty, the value at the placeholder.
void spread(const ImageLayout& layout, std::span<const uint8_t> values, size_t item,
            std::span<const uint8_t> filler, Buffer& out);

}  // namespace headrace
