// SPDX-License-Identifier: Apache-2.0
// A feature of one record as the value of a field.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/formats/tfrecord/tf_fields.h"
#include "headrace/sources/schema.h"

namespace headrace {

// HR0472: the record is no tf.train.Example. Its offset counts from `begin`.
Error not_an_example(const TfProblem& problem, const uint8_t* begin);

// Points `out` to the value, or says how many bytes it takes to write it elsewhere; 0: it stands in
// `out` already. `value`: a Feature, of lists a FeatureList; null where the record has none.
// HR0472, or HR0473 where it is not there or does not fit; offsets count from `begin`.
Result<size_t> prepare_value(const TfField& field, std::span<const uint8_t> value,
                             bool empty_if_missing, const uint8_t* begin, FieldData& out);
// REQUIRES: prepare_value() asked for as many bytes as there are at `to`.
void write_value(const TfField& field, std::span<const uint8_t> value, uint8_t* to);

// A label as it is delivered. Files may hold any number, so the sum wraps.
inline int64_t tf_label(int64_t stored, int64_t label_offset) {
  return static_cast<int64_t>(static_cast<uint64_t>(stored) + static_cast<uint64_t>(label_offset));
}

}  // namespace headrace
