// SPDX-License-Identifier: Apache-2.0
// The datasets of an HDF5 file that become fields, with their names and
// kinds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/formats/hdf5/hdf5_dataset.h"
#include "headrace/sources/schema.h"

namespace headrace {

// How a field's value is made from a row.
enum class Hdf5Form : uint8_t {
  kNumbers,   // a row of numbers, in native byte order
  kScalar,    // one integer, as int64
  kText,      // a string of fixed length
  kBytes,     // the row's bytes unchanged
  kString,    // a string of any length
  kSequence,  // numbers of any length: a tensor, bytes or an encoded image
};

struct Hdf5FieldPlan {
  Field field;
  Hdf5Form form = Hdf5Form::kNumbers;
  bool channels_last = false;  // stored as (H, W, C), delivered as (C, H, W)
  bool text_label = false;     // strings that become class indices
  std::string path;            // of the dataset
  Hdf5Type type;
  Shape row_shape;
};

// A dataset as a field: `name` is the caller's name for it, or empty.
struct Hdf5Choice {
  std::string name;
  Hdf5Outline outline;
};

// The datasets named by `fields` ("label=/train/y", "/train/y"), or, if it is null, all that share
// the most common number of rows. Throws Exception HR0492 if no dataset is suitable, HR0494 if one
// is a link to another file.
std::vector<Hdf5Choice> choose_hdf5_datasets(const Hdf5File& file,
                                             const std::vector<std::string>* fields);

// Determines names and kinds: uint8 images and masks, labels, and the rest. Inspects the first
// value of sequences of bytes. `datasets` are the chosen ones.
std::vector<Hdf5FieldPlan> plan_hdf5_fields(
    const Hdf5File& file, const std::vector<Hdf5Choice>& choices,
    const std::vector<std::unique_ptr<Hdf5Dataset>>& datasets);

// HR0492.
[[noreturn]] void hdf5_fields_do_not_fit(const Hdf5File& file, std::string what, std::string hint,
                                         std::string member = {});

}  // namespace headrace
