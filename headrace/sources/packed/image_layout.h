// SPDX-License-Identifier: Apache-2.0
// Where the images of a document are among its tokens, once each placeholder has become as many
// tokens as its image has.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/sources/packed/image_forms.h"

namespace headrace {

// Elements [begin, begin + count) of a document, then this many of an image, in place of one
// placeholder; 0: no image follows, or its placeholders are among the elements.
struct Run {
  int64_t begin = 0, count = 0, image_tokens = 0;
};

struct ImageLayout {
  std::vector<Run> runs;
  std::vector<int64_t> positions;  // of the images' first tokens
  int64_t length = 0;              // in tokens
};

// forms: of the document's images, in their order; empty where documents have none. expand: a
// placeholder stands for an image, else for each of its tokens. HR1453, without the document.
Result<ImageLayout> image_layout(std::span<const int64_t> ids, std::span<const ImageForm> forms,
                                 int64_t placeholder, bool expand);

// Values of a document, each of `item` bytes, as the layout has them. An image's tokens all have
// `filler`; where it is empty, its placeholder's value.
void spread(const ImageLayout& layout, std::span<const uint8_t> values, size_t item,
            std::span<const uint8_t> filler, Buffer& out);

}  // namespace headrace
