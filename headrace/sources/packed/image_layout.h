// SPDX-License-Identifier: Apache-2.0
// The positions of a document's images among its tokens, after each placeholder is expanded to the
// number of tokens of its image.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/sources/packed/image_forms.h"

namespace headrace {

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
