// SPDX-License-Identifier: Apache-2.0
// Determines the fields of WebDataset samples: inferred from how often extensions occur, or as
// specified by the user.
#pragma once

#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/formats/webdataset/wds_sample.h"
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

}  // namespace headrace
