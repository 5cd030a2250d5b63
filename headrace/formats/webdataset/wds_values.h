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

// HR0466: a component of a sample does not match its extension, or is missing.
Error bad_sample(std::string what, std::string hint = {});

// Decimal digits surrounded by blanks; or, if classes are given, the name of one.
Result<int64_t> wds_integer(std::span<const uint8_t> bytes, const ClassList& classes);

// A .npy, in the field's format. `own` keeps converted values.
Result<void> wds_array(std::span<const uint8_t> bytes, const Field& field, Buffer& own,
                       FieldData& out);
// The field for arrays with these headers, from a sample of records.
void describe_wds_array(std::span<const std::vector<uint8_t>> samples, Field& field);

// A value inside of a JSON text. `found` is false, without an error, if there is none.
Result<void> wds_json(std::span<const uint8_t> bytes, const WdsField& field, Buffer& own,
                      FieldData& out, bool& found);

// Sets the value of a missing component: no text, no bytes, -1, NaN. False if the field's type has
// none.
bool set_empty(const WdsField& field, Buffer& own, FieldData& out);

}  // namespace headrace
