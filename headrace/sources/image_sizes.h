// SPDX-License-Identifier: Apache-2.0
// Sizes of a field's encoded images, from their headers.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

struct ImageSize {
  int64_t height = -1, width = -1;  // as stored; -1: a bad record
  int64_t orientation = 1;          // as in Exif: 5 and above swap height and width
};

// Reads the sizes for all records, on `threads` threads, and stores them in the user's cache
// (header_cache.h). REQUIRES: a field of encoded images or masks. Throws what `progress` throws,
// and storage errors.
std::vector<ImageSize> read_image_sizes(const Source& source, size_t field, int threads,
                                        const Progress& progress);

}  // namespace headrace
