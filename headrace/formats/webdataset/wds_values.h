// SPDX-License-Identifier: Apache-2.0
// Converts the bytes of a component to the value of a field. Thread-safe.
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

// Parses decimal digits surrounded by whitespace; or, if classes are given, the name of a class.
Result<int64_t> wds_integer(std::span<const uint8_t> bytes, const ClassList& classes);

// Parses a .npy that matches the field. `own`: memory for converted values.
Result<void> wds_array(std::span<const uint8_t> bytes, const Field& field, Buffer& own,
                       FieldData& out);
// Sets dtype and shape of the field from the .npy headers of some records.
void describe_wds_array(std::span<const std::vector<uint8_t>> samples, Field& field);

// Reads a value from a JSON text. If there is none, `found` is false, without an error.
Result<void> wds_json(std::span<const uint8_t> bytes, const WdsField& field, Buffer& own,
                      FieldData& out, bool& found);

// Sets the value for a missing component: empty text, no bytes, -1, NaN. False if there is no such
// value for the field's type.
bool set_empty(const WdsField& field, Buffer& own, FieldData& out);

}  // namespace headrace
