// SPDX-License-Identifier: Apache-2.0
// Converts named arrays in a file to columns of a source: chooses the arrays and the names of the
// fields, and detects images, masks and labels. The same rules apply to .npy, .npz and safetensors.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/base/parameters.h"
#include "headrace/sources/columns/columns.h"

namespace headrace {

// `fields=`: the arrays to use, in order, each "name" or "field=name".
Param array_fields_param();
// `channels=`: the position of an image's channel axis.
Param channels_param();

struct ArrayChoice {
  std::string name;   // in the file
  std::string field;  // as requested by the caller; empty: derived from `name`
};
// All arrays, or those in `fields`. Throws Exception HR0420 for names that the file does not
// contain.
std::vector<ArrayChoice> choose_arrays(const std::vector<std::string>& names,
                                       const Arguments& arguments);

struct NamedArray {
  ArrayChoice choice;
  std::variant<FileArray, TextColumn> values;
};
// Arrays named image, images or x become the field image, if they are uint8 and have the shape of
// images; mask and masks become mask, and label, labels, target, targets and y become label
// likewise. Others keep their names, with _ for invalid characters. Throws Exception HR0420 if
// numbers of records differ.
std::vector<Column> columns_from_arrays(std::vector<NamedArray> arrays, const Arguments& arguments);

// Whether the array's name has a special meaning (image, mask, label) and its values match it.
bool has_meaning(const NamedArray& array, const Arguments& arguments);

// Whether records of this shape can be images: (H, W), (C, H, W) or, transposed by make_picture(),
// (H, W, C).
bool can_be_picture(const FileArray& array, const std::string& channels);
void make_picture(FileArray& array, const std::string& channels);

// "images" -> "image", also for mask and label; empty: the name has no special meaning.
std::string_view meaning_of(std::string_view name);

// Converts text to a valid field name: letters, digits and _, not beginning with a digit, and
// different from the fields that every source has. Always valid UTF-8, regardless of the bytes.
std::string field_name_of(std::string_view text);

}  // namespace headrace
