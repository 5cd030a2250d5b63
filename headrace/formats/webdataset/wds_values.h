// SPDX-License-Identifier: Apache-2.0
// From the bytes of a component to the value of a field. Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/formats/webdataset/wds_fields.h"
#include "headrace/sources/classes.h"

namespace headrace {

// HR0466: a component of a sample is not what its extension says, or is not there.
Error bad_sample(std::string what, std::string hint = {});

// Decimal digits with blanks around them; or, where classes are given, the name of one.
Result<int64_t> wds_integer(std::span<const uint8_t> bytes, const ClassList& classes);

// A .npy, as the field has it. `own` keeps what had to be changed.
Result<void> wds_array(std::span<const uint8_t> bytes, const Field& field, Buffer& own,
                       FieldData& out);
// The field of arrays like these, whose headers are those of some samples.
void describe_wds_array(std::span<const std::vector<uint8_t>> samples, Field& field);

// A value inside of a JSON text. `found` is false, and the result good, where there is none.
Result<void> wds_json(std::span<const uint8_t> bytes, const WdsField& field, Buffer& own,
                      FieldData& out, bool& found);

// Sets the value of a missing component: no text, no bytes, -1, NaN. False if there is none
// for it.
bool set_empty(const WdsField& field, Buffer& own, FieldData& out);

}  // namespace headrace
