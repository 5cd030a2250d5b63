// SPDX-License-Identifier: Apache-2.0
// Which fields the features of TFRecords become: guessed from some of the records, or as the caller
// names them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/formats/schema.h"
#include "headrace/formats/tfrecord/tf_example.h"

namespace headrace {

struct TfField {
  Field field;
  std::string feature;    // its name in the records
  bool is_list = false;   // of a SequenceExample's feature_lists
  bool optional = false;  // some of the records that were looked at do not have it
};

// What a feature looked like in the records that were looked at.
struct TfSeen {
  int64_t records = 0;                           // that have it
  bool kinds[4] = {};                            // by TfKind
  int64_t min_count = INT64_MAX, max_count = 0;  // values in a record, or in a step of a list
  bool text = true;                              // of bytes: all of them
  int64_t byte_values = 0, pictures = 0;         // most of them, as one may be bad
};

class TfSample {
 public:
  // False, and nothing is counted, when it is no Example with a feature.
  bool add(std::span<const uint8_t> message);

  using Key = std::pair<std::string, bool>;  // feature, is_list
  const std::map<Key, TfSeen>& features() const { return features_; }
  int64_t examples() const { return examples_; }

 private:
  std::map<Key, TfSeen> features_;
  int64_t examples_ = 0;
};

// All features that a field can hold, pictures and the label first, the rest by name. The names of
// the others go to `left_out`, each with the reason.
std::vector<TfField> guessed_fields(const TfSample& sample, std::vector<std::string>& left_out);

// "NAME=FEATURE:TYPE[SHAPE]", of which only the feature is needed. `all`: the sample was every
// record there is. Throws Exception HR0474.
std::vector<TfField> given_fields(const std::vector<std::string>& specs, const TfSample& sample,
                                  bool all);

}  // namespace headrace
