// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <optional>

#include "headrace/formats/hdf5/hdf5_messages.h"

namespace headrace {
namespace {

constexpr int kDeepest = 4;  // an array of sequences of an enumeration of integers
constexpr size_t kMaxDimensions = 32;

enum : uint8_t {
  kInteger,
  kFloat,
  kTime,
  kTextClass,
  kBits,
  kOpaqueClass,
  kCompound,
  kReference,
  kEnum,
  kVariable,
  kArray,
  kComplex,
};

Hdf5Type refused(std::string what, uint32_t bytes) {
  Hdf5Type type;
  type.bytes = bytes;
  type.refusal = std::move(what);
  return type;
}

std::optional<DType> integer_dtype(uint32_t bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? DType::kInt8 : DType::kUInt8;
    case 2:
      return is_signed ? DType::kInt16 : DType::kUInt16;
    case 4:
      return is_signed ? DType::kInt32 : DType::kUInt32;
    case 8:
      return is_signed ? DType::kInt64 : DType::kUInt64;
    default:
      return {};
  }
}

struct Header {
  uint8_t version = 0, what = 0;
  uint32_t bits = 0, bytes = 0;
};

class TypeParser {
 public:
  TypeParser(const Hdf5File& file, const Hdf5Message& message)
      : file_(file), message_(message), in_(file.cursor(message.bytes)) {}

  Hdf5Type parse(int depth = 0) {
    Header head;
    const uint8_t first = in_.u8();
    head.version = first >> 4, head.what = first & 15;
    head.bits = static_cast<uint32_t>(in_.number(3));
    head.bytes = in_.u32();
    if (!in_.good() || head.version < 1) bad("is truncated");
    if (head.bytes == 0) bad("has elements of zero bytes");
    Hdf5Type type = parse(head, depth);
    if (!in_.good()) bad("is truncated");
    return type;
  }

 private:
  [[noreturn]] void bad(const std::string& how) const {
    file_.damaged(message_.address, "a datatype that " + how);
  }

  Hdf5Type parse(const Header& head, int depth) {
    switch (head.what) {
      case kInteger:
      case kBits:
        return integer(head);
      case kFloat:
        return floating(head);
      case kTextClass:
        return text(head);
      case kOpaqueClass: {
        Hdf5Type type{.what = Hdf5Type::Class::kOpaque, .bytes = head.bytes};
        in_.skip(head.bits & 0xFF);
        return type;
      }
      case kEnum:
        return enumeration(head, depth);
      case kVariable:
        return variable(head, depth);
      case kArray:
        return array(head, depth);
      case kCompound:
        return refused("a compound type", head.bytes);
      case kReference:
        return refused("references", head.bytes);
      case kComplex:
        return refused("complex numbers", head.bytes);
      case kTime:
        return refused("the class time", head.bytes);
      default:
        return refused("a type of the unknown class " + std::to_string(head.what), head.bytes);
    }
  }

  Hdf5Type integer(const Header& head) {
    const uint16_t offset = in_.u16(), precision = in_.u16();
    const bool is_signed = head.what == kInteger && (head.bits & 8) != 0;
    const std::optional<DType> dtype = integer_dtype(head.bytes, is_signed);
    if (!dtype || offset != 0 || precision != 8 * head.bytes) {
      return refused("integers of " + std::to_string(precision) + " bits in " +
                         std::to_string(head.bytes) + " bytes",
                     head.bytes);
    }
    return {.what = Hdf5Type::Class::kNumber,
            .bytes = head.bytes,
            .dtype = *dtype,
            .big_endian = (head.bits & 1) != 0};
  }

  Hdf5Type floating(const Header& head) {
    struct Form {
      uint16_t offset, precision;
      uint8_t exponent_at, exponent_bits, mantissa_at, mantissa_bits;
      uint32_t bias;
      bool operator==(const Form&) const = default;
    };
    struct Known {
      Form form;
      DType dtype;
    };
    static constexpr Known kKnown[] = {
        {{0, 16, 10, 5, 0, 10, 15}, DType::kFloat16},
        {{0, 16, 7, 8, 0, 7, 127}, DType::kBFloat16},
        {{0, 32, 23, 8, 0, 23, 127}, DType::kFloat32},
        {{0, 64, 52, 11, 0, 52, 1023}, DType::kFloat64},
    };
    Form form{};
    form.offset = in_.u16(), form.precision = in_.u16();
    form.exponent_at = in_.u8(), form.exponent_bits = in_.u8();
    form.mantissa_at = in_.u8(), form.mantissa_bits = in_.u8();
    form.bias = in_.u32();
    const uint32_t order = (head.bits & 1) | (head.bits >> 5 & 2);
    const uint32_t normalization = head.bits >> 4 & 3, sign_at = head.bits >> 8 & 0xFF;
    for (const Known& known : kKnown) {
      if (form != known.form || head.bytes * 8 != form.precision || order > 1 ||
          normalization != 2 || sign_at != form.precision - 1U) {
        continue;
      }
      return {.what = Hdf5Type::Class::kNumber,
              .bytes = head.bytes,
              .dtype = known.dtype,
              .big_endian = order == 1};
    }
    return refused(
        "floating-point numbers of " + std::to_string(head.bytes) + " bytes that are not IEEE's",
        head.bytes);
  }

  Hdf5Type text(const Header& head) {
    const uint32_t padding = head.bits & 15;
    if (padding > 2) bad("has strings padded in an unknown way");
    return {.what = Hdf5Type::Class::kText,
            .bytes = head.bytes,
            .padding = static_cast<Hdf5Type::Padding>(padding)};
  }

  Hdf5Type nested(int depth) {
    if (depth >= kDeepest) bad("is nested too deeply");
    return parse(depth + 1);
  }

  // h5py writes bool as an enumeration of FALSE and TRUE; other enumerations become their numbers.
  Hdf5Type enumeration(const Header& head, int depth) {
    Hdf5Type type = nested(depth);
    if (type.what != Hdf5Type::Class::kNumber || is_floating(type.dtype) ||
        type.bytes != head.bytes) {
      if (type.what == Hdf5Type::Class::kRefused) return type;
      bad("enumerates no integers");
    }
    const uint32_t count = head.bits & 0xFFFF;
    std::vector<std::string> names;
    for (uint32_t i = 0; i < count && in_.good(); ++i) names.push_back(name(head.version));
    bool in_order = true;
    for (uint32_t i = 0; i < count && in_.good(); ++i) {
      const std::span<const uint8_t> raw = in_.bytes(type.bytes);
      uint64_t value = 0;
      for (size_t j = 0; j < raw.size(); ++j) {
        value = value << 8 | raw[type.big_endian ? j : raw.size() - 1 - j];
      }
      in_order = in_order && value == i;
    }
    if (!in_.good()) bad("is truncated");
    if (type.bytes == 1 && in_order && count == 2 && names[0] == "FALSE" && names[1] == "TRUE") {
      type.dtype = DType::kBool;
    } else if (in_order) {
      type.names = std::move(names);
    }
    return type;
  }

  // Ends with a zero byte, padded to eight bytes before version 3.
  std::string name(uint8_t version) {
    std::string out;
    for (uint8_t c = in_.u8(); c != 0 && in_.good(); c = in_.u8()) out += static_cast<char>(c);
    if (version < 3) in_.skip((8 - (out.size() + 1) % 8) % 8);
    return out;
  }

  Hdf5Type variable(const Header& head, int depth) {
    if (head.bytes != 4U + file_.address_bytes() + 4U) bad("has the wrong size for its class");
    if ((head.bits & 15) == 1) return {.what = Hdf5Type::Class::kString, .bytes = head.bytes};
    if ((head.bits & 15) != 0) bad("has a variable-length type of an unknown kind");
    Hdf5Type type = nested(depth);
    if (type.what != Hdf5Type::Class::kNumber || !type.inner.empty()) {
      const std::string what =
          type.what == Hdf5Type::Class::kRefused ? type.refusal : "strings or arrays";
      return refused("sequences of " + what, head.bytes);
    }
    type.what = Hdf5Type::Class::kSequence;
    type.bytes = head.bytes;
    type.names.clear();
    return type;
  }

  Hdf5Type array(const Header& head, int depth) {
    const uint8_t dimensions = in_.u8();
    if (dimensions > kMaxDimensions) bad("is an array of too many dimensions");
    if (head.version < 3) in_.skip(3);
    uint64_t count = 1;
    Shape shape;
    for (int i = 0; i < dimensions; ++i) {
      const uint32_t size = in_.u32();
      if (size == 0 || __builtin_mul_overflow(count, size, &count) || count > head.bytes) {
        bad("is an array of an invalid shape");
      }
      shape.push_back(size);
    }
    if (head.version < 3) in_.skip(4U * dimensions);
    if (!in_.good()) bad("is truncated");
    Hdf5Type type = nested(depth);
    if (type.what == Hdf5Type::Class::kRefused) return type;
    if (type.what != Hdf5Type::Class::kNumber)
      return refused("arrays of strings or sequences", head.bytes);
    if (count * type.bytes != head.bytes) bad("is an array whose size does not match its elements");
    shape.insert(shape.end(), type.inner.begin(), type.inner.end());
    type.inner = std::move(shape);
    type.bytes = head.bytes;
    type.names.clear();
    return type;
  }

  const Hdf5File& file_;
  const Hdf5Message& message_;
  Hdf5Cursor in_;
};

}  // namespace

Hdf5Type hdf5_type(const Hdf5File& file, const Hdf5Object& object) {
  const Hdf5Message* message = object.find(Hdf5MessageType::kDatatype);
  if (!message) file.damaged(object.address(), "a dataset without a type");
  return TypeParser(file, *message).parse();
}

}  // namespace headrace
