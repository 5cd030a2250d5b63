// SPDX-License-Identifier: Apache-2.0
// Converts the values of an LMDB database to fields: encoded images, Caffe's Datum, or plain bytes.
//
// LmdbValues is created from a few values, which determine the schema; a later value that does not
// match the schema is an error of its record. Const members may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/tensor.h"
#include "headrace/sources/schema.h"

namespace headrace {

using ValueBytes = std::span<const uint8_t>;
// Reads out.size() bytes of a value, starting at `offset`.
using ReadValue = std::function<Result<void>(uint64_t offset, std::span<uint8_t> out)>;

class LmdbValues {
 public:
  virtual ~LmdbValues() = default;
  virtual std::string_view name() const = 0;  // "datum", as in values=
  const Schema& schema() const { return schema_; }
  // How many elements of RecordData::owned parse() uses, including the value's own bytes.
  virtual size_t buffers() const { return 1; }
  // Like ExtentSource::parse. Offsets of errors count from the start of the value.
  virtual Result<void> parse(ValueBytes value, const std::vector<bool>& wanted,
                             RecordData& out) const = 0;
  // The label, without reading the image. REQUIRES: the schema has a field "label".
  virtual Result<int64_t> label(uint64_t bytes, const ReadValue& read) const;

 protected:
  Schema schema_;
};

struct ValueOptions {
  bool bgr = true;  // raw pixels are in the order blue, green, red
};

// Null, with the reason in `why`, if the samples are not Datums, or differ too much.
std::unique_ptr<LmdbValues> datum_values(std::span<const ValueBytes> samples,
                                         const ValueOptions& options, std::string& why);

// `kind`: from values=; empty: detected from the samples. Throws Exception HR0484 if the samples
// are of another kind, or of an unsupported one such as pickles.
std::unique_ptr<LmdbValues> lmdb_values(std::string_view kind, std::span<const ValueBytes> samples,
                                        const ValueOptions& options);

// HR0485: this value differs from the others. `offset` counts from its start.
Error bad_value(std::string what, uint64_t offset = 0);

// Convert (H, W, C) or copy (C, H, W) pixels to (C, H, W). `swap`: reverse the order of three
// channels.
void planes_from_pixels(const uint8_t* pixels, int64_t channels, int64_t area, uint8_t* out,
                        bool swap);
void copy_planes(const uint8_t* planes, int64_t channels, int64_t area, uint8_t* out, bool swap);

}  // namespace headrace
