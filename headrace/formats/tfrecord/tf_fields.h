// SPDX-License-Identifier: Apache-2.0
// The fields of TFRecords: inferred from some of the records, or as specified by the caller.
#pragma once

#include <string>
#include <vector>

#include "headrace/formats/tfrecord/tf_sample.h"
#include "headrace/sources/schema.h"

namespace headrace {

struct TfField {
  Field field;
  std::string feature;    // its name in the records
  bool is_list = false;   // from a SequenceExample's feature_lists
  bool optional = false;  // missing in some of the sampled records
};

// All features that can be fields: images and the label first, the rest sorted by name. The names
// of the others go to `left_out`, each with the reason.
std::vector<TfField> guessed_fields(const TfSample& sample, std::vector<std::string>& left_out);

// Parses "NAME=FEATURE:TYPE[SHAPE]", where only FEATURE is required. `all`: the sample contained
// every record. Throws Exception HR0474.
std::vector<TfField> given_fields(const std::vector<std::string>& specs, const TfSample& sample,
                                  bool all);

}  // namespace headrace
