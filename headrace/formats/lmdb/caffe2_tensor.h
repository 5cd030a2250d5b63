// SPDX-License-Identifier: Apache-2.0
// The messages of Caffe2's TensorProtos, as they stand in LMDB databases:
//
//   message TensorProtos { repeated TensorProto protos = 1; }
//   message TensorProto {
//     repeated int64 dims = 1;          optional DataType data_type = 2 [default = FLOAT];
//     repeated float float_data = 3;    repeated int32 int32_data = 4;   optional bytes byte_data =
//     5; repeated bytes string_data = 6;   optional string name = 7;        DeviceOption device =
//     8; repeated double double_data = 9;  repeated int64 int64_data = 10;  optional Segment
//     segment = 11; optional bytes raw_data = 13;
//   }
// An encoded picture is a STRING of one element, a raw one BYTEs of (height, width, channels).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/formats/lmdb/lmdb_values.h"

namespace headrace {

constexpr uint64_t kCaffe2String = 4;  // the type of tensors of strings

struct Caffe2Tensor {
  ValueBytes message;
  Shape dims;
  uint64_t type = 1;
  std::string_view name;
  ValueBytes bytes;  // of byte_data or raw_data
  ValueBytes string;
  uint64_t strings = 0;
  std::array<uint64_t, 14> elements = {};  // in each field of numbers
  bool raw = false;                        // `bytes` are the elements, whatever their type
};

// How Caffe2 stores the elements of a type: as what, and in which field.
struct Caffe2Type {
  uint64_t number;
  DType dtype;
  uint32_t field;
  bool as_bytes;
};
// Null for strings and for what is not read.
const Caffe2Type* caffe2_type(uint64_t number);

// A value, and one message of it, which stands at `at` in the value. HR0485.
Result<std::vector<Caffe2Tensor>> caffe2_tensors_from(ValueBytes value);
Result<Caffe2Tensor> caffe2_tensor_from(ValueBytes message, size_t at);

bool is_one_integer(const Caffe2Tensor& tensor);
// How many elements a tensor of numbers has. HR0485 when not just as many are there.
Result<uint64_t> elements_of(const Caffe2Tensor& tensor, const Caffe2Type& type);
// The elements, dense and in native order: those of the value, or converted into `memory`.
Result<ValueBytes> numbers_of(const Caffe2Tensor& tensor, const Caffe2Type& type, Buffer& memory);
// REQUIRES: is_one_integer(tensor).
Result<int64_t> integer_of(const Caffe2Tensor& tensor);

}  // namespace headrace
