// SPDX-License-Identifier: Apache-2.0
// Statistics of the features of some records, from which fields are inferred.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "headrace/formats/tfrecord/tf_example.h"

namespace headrace {

// Statistics of a feature in the sampled records.
struct TfSeen {
  int64_t records = 0;                           // records with this feature
  bool kinds[4] = {};                            // by TfKind
  int64_t min_count = INT64_MAX, max_count = 0;  // values per record, or per step of a list
  bool text = true;                              // kBytes: all values are text
  int64_t byte_values = 0, pictures = 0;         // the majority decides: some may be bad
};

class TfSample {
 public:
  // False, without counting anything, if the message is not an Example with at least one feature.
  bool add(std::span<const uint8_t> message);

  using Key = std::pair<std::string, bool>;  // feature, is_list
  const std::map<Key, TfSeen>& features() const { return features_; }
  int64_t examples() const { return examples_; }

 private:
  std::map<Key, TfSeen> features_;
  int64_t examples_ = 0;
};

}  // namespace headrace
