// SPDX-License-Identifier: Apache-2.0
// The values of an LMDB database, and how they become fields: a picture as it is, Caffe's
// Datum, or just bytes.
//
// A LmdbValues is made from a few values, and fixes the schema by them; a later value that does not
// fit it is that record's error. Const members may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/formats/arrays/tensor_shapes.h"
#include "headrace/sources/schema.h"

namespace headrace {

using ValueBytes = std::span<const uint8_t>;
// Reads out.size() bytes of a value, from `offset` on.
using ReadValue = std::function<Result<void>(uint64_t offset, std::span<uint8_t> out)>;

class LmdbValues {
 public:
  virtual ~LmdbValues() = default;
  virtual std::string_view name() const = 0;  // "datum", as in values=
  const Schema& schema() const { return schema_; }
  // How many elements of RecordData::owned parse() uses, the value's own bytes included.
  virtual size_t buffers() const { return 1; }
  // As ExtentSource::parse. Offsets of errors count from the value's begin.
  virtual Result<void> parse(ValueBytes value, const std::vector<bool>& wanted,
                             RecordData& out) const = 0;
  // The label, without the picture. REQUIRES: the schema has a field "label".
  virtual Result<int64_t> label(uint64_t bytes, const ReadValue& read) const;

 protected:
  Schema schema_;
};

struct ValueOptions {
  bool bgr = true;  // raw pixels stand in the order blue, green, red
};

// Null, and why, when the samples are not such values, or differ too much.
std::unique_ptr<LmdbValues> datum_values(std::span<const ValueBytes> samples,
                                         const ValueOptions& options, std::string& why);

// `kind`: of values=; empty: what the samples look like. Throws Exception HR0484 when they are not
// of the kind, or are pickles and the like, which are not read.
std::unique_ptr<LmdbValues> lmdb_values(std::string_view kind, std::span<const ValueBytes> samples,
                                        const ValueOptions& options);

// HR0485: this value is not like the others. `offset` counts from its begin.
Error bad_value(std::string what, uint64_t offset = 0);

// (H, W, C) or (C, H, W) pixels as (C, H, W); `swap`: the first of three channels is the last.
void planes_from_pixels(const uint8_t* pixels, int64_t channels, int64_t area, uint8_t* out,
                        bool swap);
void copy_planes(const uint8_t* planes, int64_t channels, int64_t area, uint8_t* out, bool swap);

}  // namespace headrace
