// SPDX-License-Identifier: Apache-2.0
// Caffe's Datum: an image, encoded or as pixels, or a float32 array; and a label.
//
//   message Datum {
//     optional int32 channels = 1;  optional int32 height = 2;  optional int32 width = 3;
//     optional bytes data = 4;      // encoded, or (C, H, W) uint8
//     optional int32 label = 5;
//     repeated float float_data = 6;
//     optional bool encoded = 7 [default = false];
//   }
#include <algorithm>
#include <array>
#include <cstring>

#include "headrace/codecs/codec.h"
#include "headrace/formats/lmdb/lmdb_values.h"
#include "headrace/formats/shards/proto_wire.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

enum : uint32_t { kChannels = 1, kHeight, kWidth, kData, kLabel, kFloatData, kEncoded };
enum class Form : uint8_t { kEncodedPicture, kPixels, kFloatArray };

struct Datum {
  std::array<int64_t, 3> sizes = {};  // channels, height, width
  ValueBytes data;
  size_t data_at = 0;
  int64_t label = 0;
  bool has_label = false, encoded = false;
  uint64_t floats = 0;
};

// int32 fields are stored as 64 bits.
int64_t int32_from(uint64_t number) { return static_cast<int32_t>(number); }

bool is_known(const ProtoReader& in) {
  switch (in.field()) {
    case kData:
      return in.is(ProtoType::kBytes);
    case kFloatData:
      return in.is(ProtoType::kFixed32) || (in.is(ProtoType::kBytes) && in.bytes().size() % 4 == 0);
    default:
      return in.field() <= kEncoded && in.is(ProtoType::kVarint);
  }
}

// `strict`: only fields that a Datum has.
Result<Datum> datum_from(ValueBytes value, bool strict) {
  Datum out;
  ProtoReader in(value);
  while (in.next()) {
    if (!is_known(in)) {
      if (in.field() > kEncoded && !strict) continue;
      return bad_value("field " + std::to_string(in.field()) + " is not part of a Datum",
                       in.offset());
    }
    switch (in.field()) {
      case kData:
        out.data = in.bytes();
        out.data_at = in.offset();
        break;
      case kLabel:
        out.label = int32_from(in.number());
        out.has_label = true;
        break;
      case kFloatData:
        out.floats += in.is(ProtoType::kFixed32) ? 1 : in.bytes().size() / 4;
        break;
      case kEncoded:
        out.encoded = in.number() != 0;
        break;
      default:
        out.sizes[in.field() - kChannels] = int32_from(in.number());
    }
  }
  if (!in.good()) {
    return bad_value(std::string("the Datum is damaged: ") + in.problem(), in.offset());
  }
  return out;
}

// The layout of a datum; an error if its parts are inconsistent.
Result<Form> form_of(const Datum& datum) {
  uint64_t elements = 0;
  const bool sound = product_of(datum.sizes, UINT64_MAX, elements) && elements > 0;
  if (datum.encoded) {
    if (!datum.data.empty()) return Form::kEncodedPicture;
    return bad_value("the Datum declares an encoded image, but has no data");
  }
  if (sound && datum.floats == 0 && datum.data.size() == elements) return Form::kPixels;
  if (sound && datum.data.empty() && datum.floats == elements) return Form::kFloatArray;
  if (datum.floats == 0 && begins_like_image(datum.data)) return Form::kEncodedPicture;
  return bad_value("the Datum has " + with_commas(static_cast<int64_t>(datum.data.size())) +
                       " bytes and " + with_commas(static_cast<int64_t>(datum.floats)) +
                       " floats for " + sizes_text(datum.sizes),
                   datum.data_at);
}

std::string_view name_of(Form form) {
  switch (form) {
    case Form::kEncodedPicture:
      return "an encoded image";
    case Form::kPixels:
      return "pixels";
    case Form::kFloatArray:
      return "floats";
  }
  return "";
}

class DatumValues final : public LmdbValues {
 public:
  DatumValues(Form form, const Shape& shape, bool label, bool bgr) : form_(form), bgr_(bgr) {
    if (form == Form::kEncodedPicture) {
      schema_.push_back(
          {.name = "image", .kind = FieldKind::kImage, .shape = {-1, -1, -1}, .encoded = true});
    } else if (form == Form::kPixels && shape[0] >= 1 && shape[0] <= 4) {
      schema_.push_back({.name = "image", .kind = FieldKind::kImage, .shape = shape});
    } else {
      schema_.push_back({.name = "data",
                         .kind = FieldKind::kTensor,
                         .dtype = form == Form::kPixels ? DType::kUInt8 : DType::kFloat32,
                         .shape = shape});
      bgr_ = false;
    }
    open_ = std::ranges::count(schema_[0].shape, -1) > 0;
    if (label) {
      schema_.push_back({.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64});
    }
  }

  std::string_view name() const override { return "datum"; }
  size_t buffers() const override { return 2; }

  Result<void> parse(ValueBytes value, const std::vector<bool>& wanted,
                     RecordData& out) const override {
    const Result<Datum> datum = datum_from(value, false);
    if (!datum) return datum.error();
    if (schema_.size() > 1 && wanted[1]) out.fields[1].scalar = datum->label;
    if (!wanted[0]) return {};
    const Result<Form> form = form_of(*datum);
    if (!form) return form.error();
    if (*form != form_) {
      return bad_value("the Datum contains " + std::string(name_of(*form)) + ", but others " +
                       std::string(name_of(form_)));
    }
    FieldData& field = out.fields[0];
    if (form_ == Form::kEncodedPicture) {
      field.bytes = datum->data;
      return {};
    }
    const Shape shape(datum->sizes.begin(), datum->sizes.end());
    if (!fits_shape(shape, schema_[0].shape)) {
      return bad_value("the Datum is of " + sizes_text(shape) + ", but others of " +
                       sizes_text(schema_[0].shape));
    }
    if (open_) field.shape = shape;
    Buffer& buffer = out.owned[1];
    if (form_ == Form::kFloatArray) {
      copy_floats(value, datum->floats, buffer);
      field.bytes = buffer.bytes();
    } else if (bgr_ && shape[0] == 3) {
      buffer.resize(datum->data.size());
      copy_planes(datum->data.data(), 3, shape[1] * shape[2], buffer.data(), true);
      field.bytes = buffer.bytes();
    } else {
      field.bytes = datum->data;
    }
    return {};
  }

  // Skips the picture, which comes before the label, and reads the rest.
  Result<int64_t> label(uint64_t bytes, const ReadValue& read) const override {
    std::array<uint8_t, 64> window;
    int64_t label = 0;
    for (uint64_t at = 0; at < bytes;) {
      const std::span<uint8_t> part(window.data(), std::min<uint64_t>(window.size(), bytes - at));
      if (Result<void> done = read(at, part); !done) return done.error();
      uint64_t used = 0;
      while (used < part.size()) {
        VarintReader in(part.subspan(used));
        const uint64_t tag = in.next(), number = tag % 8 == 5 ? 0 : in.next();
        if (!in.good()) break;  // it extends past the window
        if (tag % 8 != 0 && tag % 8 != 2 && tag % 8 != 5)
          return bad_value("the Datum is damaged", at);
        if (tag == (kLabel << 3)) label = int32_from(number);
        used = part.size() - in.left() + (tag % 8 == 5 ? 4 : 0);
        if (tag % 8 != 2) continue;
        if (number > bytes - at - used) return bad_value("the Datum is damaged", at + used);
        used += number;
      }
      if (used == 0) return bad_value("the Datum is damaged", at);
      at += used;
    }
    return label;
  }

 private:
  static void copy_floats(ValueBytes value, uint64_t count, Buffer& out) {
    out.resize(count * sizeof(float));
    uint8_t* to = out.data();
    for (ProtoReader in(value); in.next();) {
      if (in.field() != kFloatData) continue;
      std::memcpy(to, in.bytes().data(), in.bytes().size());
      to += in.bytes().size();
    }
  }

  Form form_;
  bool bgr_;
  bool open_ = false;
};

}  // namespace

std::unique_ptr<LmdbValues> datum_values(std::span<const ValueBytes> samples,
                                         const ValueOptions& options, std::string& why) {
  std::optional<Form> common;
  Shape shape;
  bool label = false;
  for (const ValueBytes value : samples) {
    const Result<Datum> datum = datum_from(value, true);
    const Result<Form> form = datum ? form_of(*datum) : Result<Form>(datum.error());
    if (!form) {
      why = form.error().what;
      return nullptr;
    }
    if (common && *common != *form) {
      why =
          "some contain " + std::string(name_of(*common)) + ", some " + std::string(name_of(*form));
      return nullptr;
    }
    const Shape own(datum->sizes.begin(), datum->sizes.end());
    if (!common) shape = own;
    merge_shapes(own, shape);
    common = *form;
    label = label || datum->has_label;
  }
  if (!common) {
    why = "there are no values to infer from";
    return nullptr;
  }
  if (*common == Form::kPixels && shape[0] < 0) {
    why = "the number of channels differs";
    return nullptr;
  }
  return std::make_unique<DatumValues>(*common, shape, label, options.bgr);
}

}  // namespace headrace
