// SPDX-License-Identifier: Apache-2.0
// The encodings of MDS: the bytes of one value as a field, like streaming 0.13,
// base/format/mds/encodings.py.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "headrace/base/byte_stream.h"
#include "headrace/base/tensor.h"
#include "headrace/base/text.h"
#include "headrace/base/utf8.h"
#include "headrace/formats/mds/mds_columns.h"
#include "headrace/sources/columns/array_elements.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

using Value = std::span<const uint8_t>;

std::string_view text_of(Value value) { return text_from_bytes(value); }

bool names_mask(std::string_view name) { return name == "mask" || name == "masks"; }
bool names_picture(std::string_view name) {
  return names_mask(name) || name == "image" || name == "images";
}

class PlainEncoding final : public MdsEncoding {
 public:
  PlainEncoding(std::string name, FieldKind kind) {
    field_ = {.name = std::move(name), .kind = kind};
    if (kind != FieldKind::kImage) return;
    if (names_mask(field_.name)) field_.kind = FieldKind::kMask;
    field_.shape = {-1, -1, -1};
    field_.encoded = true;
  }
  Result<void> parse(Value value, FieldData& out, Buffer&) const override {
    if (field_.kind == FieldKind::kText && !is_utf8(value)) {
      return bad_sample("the text is not UTF-8");
    }
    out.bytes = value;
    return {};
  }
};

// A number of fixed size. 64-bit ones, and labels, are delivered as int64.
class NumberEncoding final : public MdsEncoding {
 public:
  NumberEncoding(std::string name, DType stored) : stored_(stored) {
    const bool integer = !is_floating(stored) && stored != DType::kUInt64;
    field_ = {.name = std::move(name), .dtype = stored};
    if (integer && field_.name == "label") {
      field_.kind = FieldKind::kLabel;
      field_.dtype = DType::kInt64;
    }
  }
  Result<void> parse(Value value, FieldData& out, Buffer&) const override {
    if (field_.dtype == DType::kInt64) {
      const Result<int64_t> number = integer(value);
      if (!number) return number.error();
      out.scalar = *number;
      return {};
    }
    if (value.size() != size_of(stored_)) return wrong_size(value);
    out.bytes = value;
    return {};
  }
  Result<int64_t> integer(Value value) const override {
    if (value.size() != size_of(stored_)) return wrong_size(value);
    ByteReader in(value);
    switch (stored_) {
      case DType::kInt8:
        return int64_t{in.number<int8_t>()};
      case DType::kInt16:
        return int64_t{in.number<int16_t>()};
      case DType::kInt32:
        return int64_t{in.number<int32_t>()};
      case DType::kInt64:
        return in.number<int64_t>();
      case DType::kUInt8:
        return int64_t{in.number<uint8_t>()};
      case DType::kUInt16:
        return int64_t{in.number<uint16_t>()};
      case DType::kUInt32:
        return int64_t{in.number<uint32_t>()};
      default:
        return bad_sample("the value is not an integer");
    }
  }

 private:
  Error wrong_size(Value value) const {
    return bad_sample("a number of " + std::to_string(size_of(stored_)) + " bytes has " +
                      std::to_string(value.size()));
  }
  DType stored_;
};

// Numbers as Python formats them.
class TextNumberEncoding final : public MdsEncoding {
 public:
  TextNumberEncoding(std::string name, bool integer) {
    field_ = {.name = std::move(name), .dtype = integer ? DType::kInt64 : DType::kFloat64};
    if (integer && field_.name == "label") field_.kind = FieldKind::kLabel;
  }
  Result<void> parse(Value value, FieldData& out, Buffer& memory) const override {
    if (field_.dtype == DType::kInt64) {
      const Result<int64_t> number = integer(value);
      if (!number) return number.error();
      out.scalar = *number;
      return {};
    }
    const Result<double> number = number_from<double>(value);
    if (!number) return number.error();
    memory.resize(sizeof(double));
    std::memcpy(memory.data(), &*number, sizeof(double));
    out.bytes = memory.bytes();
    return {};
  }
  Result<int64_t> integer(Value value) const override { return number_from<int64_t>(value); }

 private:
  template <class Number>
  static Result<Number> number_from(Value value) {
    Number number{};
    const std::string_view text = text_of(value);
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem == std::errc() && end == text.data() + text.size()) return number;
    const bool large = problem == std::errc::result_out_of_range;
    return bad_sample(large ? "the number \"" + std::string(text.substr(0, 40)) + "\" is too large"
                            : "the text is not a number");
  }
};

// A picture from Pillow's tobytes(): u32 width, height, length of the mode; mode; pixels.
class PillowEncoding final : public MdsEncoding {
 public:
  PillowEncoding(std::string name, Value example) {
    const std::optional<Parts> parts = parts_of(example);
    const int64_t channels = parts ? channels_of(parts->mode) : 0;
    field_ = {.name = std::move(name),
              .kind = FieldKind::kImage,
              .shape = {channels > 0 ? channels : 3, -1, -1}};
    if (names_mask(field_.name)) field_.kind = FieldKind::kMask;
  }
  Result<void> parse(Value value, FieldData& out, Buffer& memory) const override {
    const std::optional<Parts> parts = parts_of(value);
    if (!parts) return bad_sample("the image's header is truncated");
    const int64_t channels = channels_of(parts->mode);
    if (channels != field_.shape[0]) {
      return bad_sample("an image of Pillow's mode \"" + std::string(parts->mode.substr(0, 16)) +
                        "\", where " + std::to_string(field_.shape[0]) +
                        " channels of 8 bits are expected");
    }
    const Shape shape = {channels, parts->height, parts->width};
    uint64_t bytes = 0;
    if (!product_of(shape, UINT64_MAX, bytes) || bytes == 0 || bytes != parts->pixels.size()) {
      return bad_sample("an image of " + sizes_text(shape) + " has " +
                        with_commas(static_cast<int64_t>(parts->pixels.size())) + " bytes");
    }
    out.shape = shape;
    out.bytes = parts->pixels;
    if (channels == 1) return {};
    memory.resize(bytes);
    move_channels_first(parts->pixels.data(), shape, 1, memory.data());
    out.bytes = memory.bytes();
    return {};
  }

 private:
  struct Parts {
    int64_t width = 0, height = 0;
    std::string_view mode;
    Value pixels;
  };
  static std::optional<Parts> parts_of(Value value) {
    ByteReader in(value);
    Parts parts;
    parts.width = in.number<uint32_t>();
    parts.height = in.number<uint32_t>();
    parts.mode = in.text(in.number<uint32_t>());
    if (!in.good()) return {};
    parts.pixels = in.bytes(in.left());
    return parts;
  }
  // 0 for anything except 8-bit gray or RGB: "P", whose palette is not stored, "1", "CMYK", "F".
  static int64_t channels_of(std::string_view mode) {
    if (mode == "L") return 1;
    if (mode == "LA") return 2;
    if (mode == "RGB") return 3;
    if (mode == "RGBA") return 4;
    return 0;
  }
};

// "ndarray", "ndarray:DTYPE", "ndarray:DTYPE:SIZE,SIZE": what the name leaves open is stored before
// the elements, as u8 type, and u8 (dimensions << 2 | log2 of the bytes of a size), sizes.
class ArrayEncoding final : public MdsEncoding {
 public:
  ArrayEncoding(std::string name, std::optional<DType> dtype, std::optional<Shape> shape,
                Value example)
      : own_dtype_(!dtype), own_shape_(!shape) {
    field_ = {.name = std::move(name),
              .dtype = dtype.value_or(DType::kUInt8),
              .shape = shape.value_or(Shape{-1})};
    const Result<Parts> parts = parts_of(example);
    Shape seen = field_.shape;
    if (parts) {
      field_.dtype = parts->dtype;
      seen = parts->shape;
      if (own_shape_) field_.shape.assign(seen.size(), -1);
    }
    const bool picture = names_picture(field_.name) && field_.dtype == DType::kUInt8;
    if (picture && seen.size() == 3 && seen[0] >= 1 && seen[0] <= 4) {
      field_.kind = names_mask(field_.name) ? FieldKind::kMask : FieldKind::kImage;
      field_.shape[0] = seen[0];
    }
  }
  Result<void> parse(Value value, FieldData& out, Buffer&) const override {
    const Result<Parts> parts = parts_of(value);
    if (!parts) return parts.error();
    if (parts->dtype != field_.dtype) {
      return bad_sample("an array of " + std::string(name_of(parts->dtype)) + ", but others of " +
                        std::string(name_of(field_.dtype)));
    }
    if (!fits_shape(parts->shape, field_.shape)) {
      return bad_sample("an array of " + sizes_text(parts->shape) + ", but others of " +
                        sizes_text(field_.shape));
    }
    out.bytes = parts->elements;
    if (own_shape_) out.shape = parts->shape;
    return {};
  }

  static std::optional<DType> dtype_of(std::string_view name) {
    const std::optional<DType> dtype = dtype_from_name(name);
    const bool known = dtype && std::ranges::find(kTypes, *dtype, &Type::dtype) != kTypes.end();
    return known ? dtype : std::nullopt;
  }

 private:
  struct Type {
    uint8_t code;
    DType dtype;
  };
  static constexpr std::array kTypes = {
      Type{8, DType::kUInt8},  Type{9, DType::kInt8},     Type{16, DType::kUInt16},
      Type{17, DType::kInt16}, Type{18, DType::kFloat16}, Type{32, DType::kUInt32},
      Type{33, DType::kInt32}, Type{34, DType::kFloat32}, Type{64, DType::kUInt64},
      Type{65, DType::kInt64}, Type{66, DType::kFloat64}};
  struct Parts {
    DType dtype = DType::kUInt8;
    Shape shape;
    Value elements;
  };

  Result<Parts> parts_of(Value value) const {
    ByteReader in(value);
    Parts out{.dtype = field_.dtype, .shape = field_.shape, .elements = {}};
    if (own_dtype_) {
      const auto type = std::ranges::find(kTypes, in.number<uint8_t>(), &Type::code);
      if (!in.good() || type == kTypes.end()) return bad_sample("an array of an unknown type");
      out.dtype = type->dtype;
    }
    if (own_shape_) {
      const auto form = in.number<uint8_t>();
      out.shape.clear();
      for (int i = 0; i < form >> 2; ++i) out.shape.push_back(size_in(in, form & 3));
    }
    if (!in.good()) return bad_sample("an array's header is truncated");
    uint64_t elements = 0;
    out.elements = in.bytes(in.left());
    const uint64_t most = out.elements.size() / size_of(out.dtype);
    if (!product_of(out.shape, most, elements) ||
        elements * size_of(out.dtype) != out.elements.size()) {
      return bad_sample("an array of " + sizes_text(out.shape) + " " +
                        std::string(name_of(out.dtype)) + " has " +
                        with_commas(static_cast<int64_t>(out.elements.size())) + " bytes");
    }
    return out;
  }
  // Sizes beyond 63 bits become negative, which is invalid.
  static int64_t size_in(ByteReader& in, int width) {
    switch (width) {
      case 0:
        return in.number<uint8_t>();
      case 1:
        return in.number<uint16_t>();
      case 2:
        return in.number<uint32_t>();
      default:
        return static_cast<int64_t>(in.number<uint64_t>());
    }
  }

  bool own_dtype_, own_shape_;
};

// The encoding of a column whose name contains its type: "ndarray:float32:3,4".
std::unique_ptr<MdsEncoding> array_encoding(const MdsColumn& column, const std::string& name,
                                            std::string_view config, Value example,
                                            std::string& why) {
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  const size_t colon = std::min(config.find(':'), config.size());
  if (!config.empty()) {
    dtype = ArrayEncoding::dtype_of(config.substr(0, colon));
    if (!dtype) {
      why = "arrays of an unknown type (" + column.encoding + ")";
      return nullptr;
    }
  }
  if (colon < config.size()) {
    shape.emplace();
    for (std::string_view rest = config.substr(colon + 1);;) {
      const size_t comma = std::min(rest.find(','), rest.size());
      int64_t size = 0;
      const auto [end, problem] = std::from_chars(rest.data(), rest.data() + comma, size);
      if (problem != std::errc() || end != rest.data() + comma || size < 1) {
        why = "arrays of an invalid shape (" + column.encoding + ")";
        return nullptr;
      }
      shape->push_back(size);
      if (comma == rest.size()) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return std::make_unique<ArrayEncoding>(name, dtype, shape, example);
}

struct ScalarName {
  std::string_view name;
  DType dtype;
};
constexpr std::array kScalars = {
    ScalarName{"int", DType::kInt64},       ScalarName{"uint8", DType::kUInt8},
    ScalarName{"uint16", DType::kUInt16},   ScalarName{"uint32", DType::kUInt32},
    ScalarName{"uint64", DType::kUInt64},   ScalarName{"int8", DType::kInt8},
    ScalarName{"int16", DType::kInt16},     ScalarName{"int32", DType::kInt32},
    ScalarName{"int64", DType::kInt64},     ScalarName{"float16", DType::kFloat16},
    ScalarName{"float32", DType::kFloat32}, ScalarName{"float64", DType::kFloat64}};

}  // namespace

std::unique_ptr<MdsEncoding> mds_encoding(const MdsColumn& column, const std::string& field_name,
                                          std::span<const uint8_t> example, std::string& why) {
  const std::string_view encoding = column.encoding;
  const auto scalar = std::ranges::find(kScalars, encoding, &ScalarName::name);
  if (scalar != kScalars.end()) return std::make_unique<NumberEncoding>(field_name, scalar->dtype);
  if (encoding == "ndarray" || encoding.starts_with("ndarray:")) {
    const size_t colon = encoding.find(':');
    return array_encoding(column, field_name,
                          colon == std::string_view::npos ? "" : encoding.substr(colon + 1),
                          example, why);
  }
  if (encoding == "bytes") return std::make_unique<PlainEncoding>(field_name, FieldKind::kBytes);
  if (encoding == "str" || encoding == "json" || encoding == "str_decimal") {
    return std::make_unique<PlainEncoding>(field_name, FieldKind::kText);
  }
  if (encoding == "jpeg" || encoding == "png") {
    return std::make_unique<PlainEncoding>(field_name, FieldKind::kImage);
  }
  if (encoding == "pil") return std::make_unique<PillowEncoding>(field_name, example);
  if (encoding == "str_int" || encoding == "str_float") {
    return std::make_unique<TextNumberEncoding>(field_name, encoding == "str_int");
  }
  const bool list =
      encoding.starts_with("list[") || encoding == "jpeg_array" || encoding == "jpegarray";
  why = encoding == "pkl" ? "pickles, and loading one can run arbitrary code"
        : list            ? "several images per sample (" + column.encoding + ")"
                          : "an unknown encoding (" + column.encoding + ")";
  return nullptr;
}

}  // namespace headrace
