// SPDX-License-Identifier: Apache-2.0
// Converts a feature of one record to the value of a field.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/formats/tfrecord/tf_fields.h"
#include "headrace/sources/schema.h"

namespace headrace {

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
