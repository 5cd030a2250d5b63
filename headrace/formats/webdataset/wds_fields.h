// SPDX-License-Identifier: Apache-2.0
// The fields of WebDataset samples: inferred from how often extensions occur, or as specified by
// the user; and their values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/formats/webdataset/wds_sample.h"
#include "headrace/sources/classes.h"
#include "headrace/sources/schema.h"

namespace headrace {

struct WdsField {
  enum class How : uint8_t {
    kBytes,    // the member's bytes: images, text, bytes
    kInteger,  // decimal digits, or the name of a class
    kArray,    // .npy
    kJson,     // a value inside of a JSON member
    kFolder    // the class is the sample's folder
  };
  Field field;
  How how = How::kBytes;
  std::vector<std::string> extensions;  // lower case, alternatives; "*.jpg": any that ends in .jpg
  std::vector<std::string> json_path;   // kJson: nested member names

  bool takes(std::string_view extension) const;
};

// Whether `mine`, an extension of a field, matches the extension of a member.
bool extension_fits(std::string_view mine, std::string_view extension);

struct WdsChoice {
  std::vector<WdsField> fields;
  std::vector<std::string> left_out;  // "txt (3 of 1,000)"
};

// Components that occur in at least half of the samples become fields.
WdsChoice guessed_wds_fields(const WdsCounts& counts);
// Parses "NAME=EXT;EXT", or extensions alone. Throws Exception HR0467.
WdsChoice given_wds_fields(const std::vector<std::string>& specs, const WdsCounts& counts);
// Parses "NAME:TYPE" or "NAME=MEMBER.MEMBER:TYPE", which select values of the JSON component.
// Throws Exception HR0467.
void add_json_fields(const std::vector<std::string>& specs, const WdsCounts& counts,
                     WdsChoice& choice);

// The number of samples that have all fields, according to the counts.
int64_t complete_samples(const std::vector<WdsField>& fields, const WdsCounts& counts);

[[noreturn]] void bad_wds_field(std::string what, std::string hint = {});

// --- Values (wds_values.cc): the bytes of a component as the value of a field. Thread-safe. ---

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
