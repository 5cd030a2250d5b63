// SPDX-License-Identifier: Apache-2.0
// Converts the samples of MDS shards to records: decodes each column's encoding, and locates its
// value in a sample.
//
// A sample consists of a u32 length per variable-length column, then the values. Const members may
// be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/formats/mds/mds_index.h"
#include "headrace/sources/schema.h"

namespace headrace {

// One encoding: converts a value's bytes to a field.
class MdsEncoding {
 public:
  virtual ~MdsEncoding() = default;
  const Field& field() const { return field_; }
  // `memory`: a buffer of this column for converted values. Errors are HR0488.
  virtual Result<void> parse(std::span<const uint8_t> value, FieldData& out,
                             Buffer& memory) const = 0;
  // For fields that are a single int64.
  virtual Result<int64_t> integer(std::span<const uint8_t> value) const;

 protected:
  Field field_;
};

// `example`: a value from which properties that the encoding leaves open (a shape) are determined;
// empty if there is none. Null, with the reason in `why`, for unsupported encodings. Throws
// Exception HR0486 if the column is inconsistent.
std::unique_ptr<MdsEncoding> mds_encoding(const MdsColumn& column, const std::string& field_name,
                                          std::span<const uint8_t> example, std::string& why);

// HR0488; `offset` counts from the start of the sample.
Error bad_sample(std::string what, uint64_t offset = 0);

class MdsColumns {
 public:
  // `chosen`: names of columns, in this order; empty: all. Throws Exception HR0487.
  MdsColumns(std::vector<MdsColumn> columns, const std::vector<std::string>& chosen);
  // Determines the schema from a sample; false if the sample is invalid. Must be called before
  // parse().
  bool begin(std::span<const uint8_t> sample);

  Schema schema() const;
  size_t buffers() const { return 1 + fields_.size(); }
  Result<void> parse(std::span<const uint8_t> sample, const std::vector<bool>& wanted,
                     RecordData& out) const;
  // The value of a field that is a single int64. Reads only a small part of the sample, which has
  // `bytes` bytes.
  using Read = std::function<Result<void>(uint64_t offset, std::span<uint8_t> out)>;
  Result<int64_t> integer(size_t field, uint64_t bytes, const Read& read) const;

 private:
  struct Chosen {
    size_t column = 0;
    std::string name;
    std::unique_ptr<MdsEncoding> encoding;
  };
  struct Place {
    uint64_t offset = 0, bytes = 0;
  };
  // Computes the positions of each column's values from the lengths in the first head_bytes()
  // bytes.
  Result<void> place_values(std::span<const uint8_t> head, uint64_t sample_bytes,
                            std::vector<Place>& out) const;
  size_t head_bytes() const;

  const std::vector<MdsColumn> columns_;
  std::vector<Chosen> fields_;
};

}  // namespace headrace
