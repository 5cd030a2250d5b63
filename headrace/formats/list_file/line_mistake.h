// SPDX-License-Identifier: Apache-2.0
// Lines of a list that contain more than a path and a label.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headrace {

struct LineMistake {
  std::string what, hint;
};

// The mistake in the first record's path: a number and a path ("1 cat/1.jpg", as in CUB-200's
// images.txt), a path and values ("1.jpg 0 1"), or two paths ("1.jpg 1.png"). Empty if it may be a
// path. `next`: the second record's path.
std::optional<LineMistake> line_mistake(std::string_view path, std::string_view next);

// Hint for pairs of an image and a mask.
inline constexpr std::string_view kPairsAdvice =
    "use hr.records(image=[...], mask=[...]) for pairs, or a .csv with the header image,mask";

}  // namespace headrace
