// SPDX-License-Identifier: Apache-2.0
// From named arrays in a file to columns of a source: which of them, the names of the fields, and
// which are pictures and labels. The same rules for .npy, .npz and safetensors.
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
// `channels=`: the position of a picture's channel axis.
Param channels_param();

struct ArrayChoice {
  std::string name;   // in the file
  std::string field;  // as requested by the caller; empty: by name
};
// All, or those that `fields` names. Throws Exception HR0420 for names that are not there.
std::vector<ArrayChoice> choose_arrays(const std::vector<std::string>& names,
                                       const Arguments& arguments);

struct NamedArray {
  ArrayChoice choice;
  std::variant<FileArray, TextColumn> values;
};
// image, images, x of uint8 that can be pictures become the field image; mask, masks and label,
// labels, target, targets, y likewise; others keep their names, with _ for characters that names
// cannot have. Throws Exception HR0420 if numbers of records differ.
std::vector<Column> columns_from_arrays(std::vector<NamedArray> arrays, const Arguments& arguments);

// Whether its name says what it is, and its values fit that.
bool has_meaning(const NamedArray& array, const Arguments& arguments);

// Whether records of this shape can be pictures: (H, W), (C, H, W) or, transposed by
// `make_picture`, (H, W, C).
bool can_be_picture(const FileArray& array, const std::string& channels);
void make_picture(FileArray& array, const std::string& channels);

// "images" -> "image", also for mask and label; empty: the name has no special meaning.
std::string_view meaning_of(std::string_view name);

// As a valid field name: letters, digits and _, not beginning with a digit, and different from the
// fields that every source has. Always UTF-8, whatever the bytes are.
std::string field_name_of(std::string_view text);

}  // namespace headrace
