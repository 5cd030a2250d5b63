// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/lmdb/lmdb_values.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "headrace/codecs/codec.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kOtherValues{
    "HR0484", ErrorKind::kConfig, "unexpected value type",
    "Values of an LMDB database are images (JPEG, PNG), Caffe's Datum messages, or plain bytes; "
    "values= selects the type. Pickles, which would run code from the data, and msgpack values "
    "are not supported: write the encoded images as values, or open the database in Python and "
    "pass headrace.open an object with len() and [i]."};

const ErrorCode kBadValue{
    "HR0485", ErrorKind::kData, "invalid value in an LMDB database",
    "The value differs from the other values of its database: its message is damaged, or its image "
    "has a different size or type from the first images. Only this record is bad, and on_error "
    "decides what happens to it."};

// Pickle protocols 2 to 5: begins with an opcode and the protocol, and ends with STOP.
bool is_pickle(ValueBytes value) {
  return value.size() > 3 && value[0] == 0x80 && value[1] >= 2 && value[1] <= 5 &&
         value.back() == '.';
}

// A MessagePack array or map that fills the value to the last byte. Counts pending elements instead
// of recursing.
bool is_msgpack(ValueBytes value) {
  if (value.size() < 2) return false;
  const uint8_t first = value[0];
  const bool container = (first >= 0x80 && first <= 0x9F) || (first >= 0xDC && first <= 0xDF);
  if (!container) return false;
  size_t at = 0;
  const auto big_endian = [&](size_t bytes, uint64_t& out) {
    if (value.size() - at < bytes) return false;
    out = 0;
    for (size_t i = 0; i < bytes; ++i) out = out << 8 | value[at++];
    return true;
  };
  for (uint64_t awaited = 1; awaited > 0; --awaited) {
    if (at == value.size() || awaited > value.size()) return false;
    const uint8_t type = value[at++];
    uint64_t skip = 0, items = 0;
    bool sound = type != 0xC1;
    if (type >= 0x80 && type <= 0x8F) {
      items = 2 * (type & 0x0Fu);
    } else if (type >= 0x90 && type <= 0x9F) {
      items = type & 0x0Fu;
    } else if (type >= 0xA0 && type <= 0xBF) {
      skip = type & 0x1Fu;
    } else if (type >= 0xC4 && type <= 0xC6) {
      sound = big_endian(size_t{1} << (type - 0xC4), skip);
    } else if (type >= 0xC7 && type <= 0xC9) {
      sound = big_endian(size_t{1} << (type - 0xC7), skip);
      ++skip;
    } else if (type == 0xCA || type == 0xCB) {
      skip = type == 0xCA ? 4 : 8;
    } else if (type >= 0xCC && type <= 0xD3) {
      skip = uint64_t{1} << (type - 0xCC) % 4;
    } else if (type >= 0xD4 && type <= 0xD8) {
      skip = (uint64_t{1} << (type - 0xD4)) + 1;
    } else if (type >= 0xD9 && type <= 0xDB) {
      sound = big_endian(size_t{1} << (type - 0xD9), skip);
    } else if (type >= 0xDC) {
      if (type < 0xE0) sound = big_endian(type % 2 == 0 ? 2 : 4, items);
      if (type == 0xDE || type == 0xDF) items *= 2;
    }
    if (!sound || skip > value.size() - at || items > value.size()) return false;
    at += skip;
    awaited += items;
  }
  return at == value.size();
}

class PictureValues final : public LmdbValues {
 public:
  PictureValues() {
    schema_.push_back(
        {.name = "image", .kind = FieldKind::kImage, .shape = {-1, -1, -1}, .encoded = true});
  }
  std::string_view name() const override { return "image"; }
  Result<void> parse(ValueBytes value, const std::vector<bool>&, RecordData& out) const override {
    out.fields[0].bytes = value;
    return {};
  }
};

class PlainValues final : public LmdbValues {
 public:
  PlainValues() { schema_.push_back({.name = "value", .kind = FieldKind::kBytes}); }
  std::string_view name() const override { return "bytes"; }
  Result<void> parse(ValueBytes value, const std::vector<bool>&, RecordData& out) const override {
    out.fields[0].bytes = value;
    return {};
  }
};

// Uses only the samples that parse as a Datum, if these are the majority: one may be bad.
std::unique_ptr<LmdbValues> datum_if_most(std::span<const ValueBytes> samples,
                                          const ValueOptions& options, std::string& why) {
  std::vector<ValueBytes> fitting;
  for (const ValueBytes& sample : samples) {
    if (datum_values({&sample, 1}, options, why)) fitting.push_back(sample);
  }
  if (2 * fitting.size() <= samples.size() && !samples.empty()) return nullptr;
  return datum_values(fitting, options, why);
}

bool most_match(std::span<const ValueBytes> samples, bool (*fits)(ValueBytes)) {
  return 2 * static_cast<size_t>(std::ranges::count_if(samples, fits)) > samples.size();
}

// The common format of most samples; null for plain bytes.
std::unique_ptr<LmdbValues> guessed(std::span<const ValueBytes> samples,
                                    const ValueOptions& options) {
  if (most_match(samples, begins_like_image)) return std::make_unique<PictureValues>();
  const bool pickles = most_match(samples, is_pickle);
  if (pickles || most_match(samples, is_msgpack)) {
    raise(kOtherValues,
          std::string("the values are ") +
              (pickles ? "pickles, and loading one can run arbitrary code"
                       : "msgpack messages, whose layout is specific to their writer"),
          "write the images' bytes as values, give headrace.open an object with len() and [i], or "
          "read the values unchanged with values=\"bytes\"");
  }
  std::string why;
  return datum_if_most(samples, options, why);
}

}  // namespace

Result<int64_t> LmdbValues::label(uint64_t, const ReadValue&) const {
  return bad_value("there is no label");
}

Error bad_value(std::string what, uint64_t offset) {
  return {.code = &kBadValue,
          .what = std::move(what),
          .where = Where{.offset = static_cast<int64_t>(offset)}};
}

void planes_from_pixels(const uint8_t* pixels, int64_t channels, int64_t area, uint8_t* out,
                        bool swap) {
  for (int64_t c = 0; c < channels; ++c) {
    uint8_t* const plane = out + (swap && channels == 3 ? 2 - c : c) * area;
    for (int64_t i = 0; i < area; ++i) plane[i] = pixels[i * channels + c];
  }
}

void copy_planes(const uint8_t* planes, int64_t channels, int64_t area, uint8_t* out, bool swap) {
  for (int64_t c = 0; c < channels; ++c) {
    std::memcpy(out + (swap && channels == 3 ? 2 - c : c) * area, planes + c * area,
                static_cast<size_t>(area));
  }
}

std::unique_ptr<LmdbValues> lmdb_values(std::string_view kind, std::span<const ValueBytes> samples,
                                        const ValueOptions& options) {
  std::unique_ptr<LmdbValues> values;
  std::string why;
  if (kind.empty()) {
    values = guessed(samples, options);
    if (values) return values;
  }
  if (kind == "image") return std::make_unique<PictureValues>();
  if (kind == "datum") values = datum_if_most(samples, options, why);
  if (kind == "bytes" || kind.empty()) return std::make_unique<PlainValues>();
  if (values) return values;
  raise(kOtherValues, "the values are not " + std::string(kind) + ": " + why,
        "omit values=, or use values=\"bytes\" to get them unchanged");
}

}  // namespace headrace
