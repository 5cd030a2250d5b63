// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/lmdb/caffe2_tensor.h"

#include <algorithm>
#include <cstring>

#include "headrace/formats/shards/proto_wire.h"
#include "headrace/sources/wording.h"

namespace headrace {
namespace {

enum : uint32_t {
  kDims = 1,
  kType,
  kFloats,
  kInts,
  kBytes,
  kStrings,
  kName,
  kDevice,
  kDoubles,
  kLongs,
  kSegment,
  kRaw = 13
};
constexpr size_t kMostTensors = 64, kMostDims = 8;

constexpr std::array kElementTypes = {
    Caffe2Type{1, DType::kFloat32, kFloats, false},  Caffe2Type{2, DType::kInt32, kInts, false},
    Caffe2Type{3, DType::kUInt8, kBytes, true},      Caffe2Type{5, DType::kBool, kInts, false},
    Caffe2Type{6, DType::kUInt8, kInts, false},      Caffe2Type{7, DType::kInt8, kInts, false},
    Caffe2Type{8, DType::kUInt16, kInts, false},     Caffe2Type{9, DType::kInt16, kInts, false},
    Caffe2Type{10, DType::kInt64, kLongs, false},    Caffe2Type{12, DType::kFloat16, kInts, false},
    Caffe2Type{13, DType::kFloat64, kDoubles, false}};
// How many numbers a packed or single field holds.
Result<uint64_t> numbers_in(const ProtoReader& in, size_t at) {
  const bool varint = in.field() == kInts || in.field() == kLongs || in.field() == kDims;
  const ProtoType single = varint                   ? ProtoType::kVarint
                           : in.field() == kDoubles ? ProtoType::kFixed64
                                                    : ProtoType::kFixed32;
  if (in.is(single)) return uint64_t{1};
  if (!in.is(ProtoType::kBytes)) return bad_value("a list of numbers is none", at + in.offset());
  if (varint) {
    // Each number ends with a byte below 128.
    return static_cast<uint64_t>(
        std::ranges::count_if(in.bytes(), [](uint8_t byte) { return byte < 0x80; }));
  }
  const size_t width = single == ProtoType::kFixed64 ? 8 : 4;
  if (in.bytes().size() % width != 0) {
    return bad_value("a list of numbers is cut off", at + in.offset());
  }
  return in.bytes().size() / width;
}

Result<void> add_dims(const ProtoReader& in, size_t at, Shape& dims) {
  const bool packed = in.is(ProtoType::kBytes);
  VarintReader numbers(in.bytes());
  for (bool more = true; more;) {
    if (packed && numbers.at_end()) break;
    const auto size = static_cast<int64_t>(packed ? numbers.next() : in.number());
    if (!numbers.good() || size < 0) {
      return bad_value("a dimension is cut off or negative", at + in.offset());
    }
    if (dims.size() == kMostDims) return bad_value("a tensor has more than 8 dimensions", at);
    dims.push_back(size);
    more = packed;
  }
  return {};
}

template <class Number, class Stored>
uint8_t* put(uint8_t* to, Stored value) {
  const auto number = static_cast<Number>(value);
  std::memcpy(to, &number, sizeof number);
  return to + sizeof number;
}

uint8_t* put_integer(DType dtype, uint64_t value, uint8_t* to) {
  switch (size_of(dtype)) {
    case 1:
      return dtype == DType::kBool ? put<uint8_t>(to, value != 0) : put<uint8_t>(to, value);
    case 2:
      return put<uint16_t>(to, value);
    case 4:
      return put<uint32_t>(to, value);
    default:
      return put<uint64_t>(to, value);
  }
}

}  // namespace

const Caffe2Type* caffe2_type(uint64_t number) {
  const auto found = std::ranges::find(kElementTypes, number, &Caffe2Type::number);
  return found == kElementTypes.end() ? nullptr : &*found;
}

Result<Caffe2Tensor> caffe2_tensor_from(ValueBytes message, size_t at) {
  Caffe2Tensor out;
  out.message = message;
  ProtoReader in(message);
  while (in.next()) {
    switch (in.field()) {
      case kDims:
        if (Result<void> dims = add_dims(in, at, out.dims); !dims) return dims.error();
        break;
      case kType:
        out.type = in.number();
        break;
      case kFloats:
      case kInts:
      case kDoubles:
      case kLongs: {
        const Result<uint64_t> count = numbers_in(in, at);
        if (!count) return count.error();
        out.elements[in.field()] += *count;
        break;
      }
      case kBytes:
      case kRaw:
        out.bytes = in.bytes();
        out.raw = in.field() == kRaw;
        break;
      case kStrings:
        out.string = in.bytes();
        ++out.strings;
        break;
      case kName:
        out.name = in.text();
        break;
      case kDevice:
        break;
      default:
        return bad_value("field " + std::to_string(in.field()) + " of a TensorProto is not read",
                         at + in.offset());
    }
  }
  if (!in.good()) {
    return bad_value(std::string("a TensorProto is damaged: ") + in.problem(), at + in.offset());
  }
  return out;
}

Result<std::vector<Caffe2Tensor>> caffe2_tensors_from(ValueBytes value) {
  std::vector<Caffe2Tensor> out;
  ProtoReader in(value);
  while (in.next()) {
    if (in.field() != 1 || !in.is(ProtoType::kBytes)) {
      return bad_value("field " + std::to_string(in.field()) + " is none of TensorProtos",
                       in.offset());
    }
    if (out.size() == kMostTensors) return bad_value("there are more than 64 tensors", in.offset());
    Result<Caffe2Tensor> tensor =
        caffe2_tensor_from(in.bytes(), static_cast<size_t>(in.bytes().data() - value.data()));
    if (!tensor) return tensor.error();
    out.push_back(std::move(*tensor));
  }
  if (!in.good()) {
    return bad_value(std::string("the TensorProtos are damaged: ") + in.problem(), in.offset());
  }
  return out;
}

bool is_one_integer(const Caffe2Tensor& tensor) {
  uint64_t elements = 0;
  return (tensor.type == 2 || tensor.type == 10) && product_of(tensor.dims, 1, elements) &&
         elements == 1;
}

Result<uint64_t> elements_of(const Caffe2Tensor& tensor, const Caffe2Type& type) {
  const uint64_t width = size_of(type.dtype);
  const uint64_t there =
      tensor.raw || type.as_bytes ? tensor.bytes.size() / width : tensor.elements[type.field];
  uint64_t wanted = 0;
  const bool whole = !tensor.raw || tensor.bytes.size() % width == 0;
  if (whole && product_of(tensor.dims, UINT64_MAX, wanted) && wanted == there) return wanted;
  return bad_value("a tensor of " + sizes_text(tensor.dims) + " has " +
                   grouped(static_cast<int64_t>(there)) + " elements");
}

Result<ValueBytes> numbers_of(const Caffe2Tensor& tensor, const Caffe2Type& type, Buffer& memory) {
  const Result<uint64_t> elements = elements_of(tensor, type);
  if (!elements) return elements.error();
  if (tensor.raw || type.as_bytes) return tensor.bytes;
  memory.resize(*elements * size_of(type.dtype));
  uint8_t* to = memory.data();
  for (ProtoReader in(tensor.message); in.next();) {
    if (in.field() != type.field) continue;
    if (in.is(ProtoType::kVarint)) {
      to = put_integer(type.dtype, in.number(), to);
    } else if (type.field == kInts || type.field == kLongs) {
      VarintReader numbers(in.bytes());
      while (!numbers.at_end()) {
        const uint64_t number = numbers.next();
        if (!numbers.good()) return bad_value("a number of a tensor is cut off");
        to = put_integer(type.dtype, number, to);
      }
    } else if (!in.bytes().empty()) {
      std::memcpy(to, in.bytes().data(), in.bytes().size());
      to += in.bytes().size();
    }
  }
  return memory.bytes();
}

Result<int64_t> integer_of(const Caffe2Tensor& tensor) {
  const Caffe2Type& type = *caffe2_type(tensor.type);
  Buffer memory;
  const Result<ValueBytes> number = numbers_of(tensor, type, memory);
  if (!number) return number.error();
  int64_t value = 0;
  std::memcpy(&value, number->data(), size_of(type.dtype));
  return type.dtype == DType::kInt32 ? static_cast<int32_t>(value) : value;
}

}  // namespace headrace
