// SPDX-License-Identifier: Apache-2.0
// The fields of TFRecords: inferred from some of the records, or as specified by the caller; and
// their values.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/formats/tfrecord/tf_example.h"
#include "headrace/sources/schema.h"

namespace headrace {

// Statistics of a feature in the sampled records.
struct TfSeen {
  int64_t records = 0;                           // records with this feature
  bool kinds[4] = {};                            // by TfKind
  int64_t min_count = INT64_MAX, max_count = 0;  // values per record, or per step of a list
  bool text = true;                              // kBytes: all values are text
  int64_t byte_values = 0, pictures = 0;         // the majority decides: some may be bad
};

// Statistics of all features, from which fields are inferred (tf_sample.cc).
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

// --- Values (tf_values.cc): a feature of one record as the value of a field ---

// HR0472: the record is not a tf.train.Example. The offset counts from `begin`.
Error not_an_example(const TfProblem& problem, const uint8_t* begin);

// Sets `out` to the value and returns 0; or, if the value must be converted, returns the size of
// the memory to pass to write_value(). `value`: a Feature, for lists a FeatureList; null if the
// record has none. HR0472, or HR0473 if the value is missing or does not match the field; offsets
// count from `begin`.
Result<size_t> prepare_value(const TfField& field, std::span<const uint8_t> value,
                             bool empty_if_missing, const uint8_t* begin, FieldData& out);
// REQUIRES: `to` has the size returned by prepare_value().
void write_value(const TfField& field, std::span<const uint8_t> value, uint8_t* to);

// A label as delivered. Files may contain any number, so the sum wraps.
inline int64_t tf_label(int64_t stored, int64_t label_offset) {
  return static_cast<int64_t>(static_cast<uint64_t>(stored) + static_cast<uint64_t>(label_offset));
}

}  // namespace headrace
