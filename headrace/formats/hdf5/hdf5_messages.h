// SPDX-License-Identifier: Apache-2.0
// An HDF5 dataset, from the messages of its object header: shape, element type, location of its
// data, filters, and fill value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/base/tensor.h"
#include "headrace/formats/hdf5/hdf5_object.h"

namespace headrace {

struct Hdf5Space {
  std::vector<uint64_t> sizes = {};  // empty for a scalar
  std::vector<uint64_t> most = {};   // maximum extents; UINT64_MAX: unlimited
  bool null = false;                 // it has no elements
};
Hdf5Space hdf5_space(const Hdf5File& file, const Hdf5Object& object);

// The type of an element in the file.
struct Hdf5Type {
  enum class Class : uint8_t {
    kNumber,    // `dtype`
    kText,      // `bytes` long, padded
    kOpaque,    // `bytes` long
    kSequence,  // numbers of variable length, stored elsewhere in the file
    kString,    // the same for characters
    kRefused,   // unsupported: see `refusal`
  };
  enum class Padding : uint8_t { kNullTerminated, kNullPadded, kSpacePadded };

  Class what = Class::kRefused;
  uint32_t bytes = 0;           // size of one element in the file
  DType dtype = DType::kUInt8;  // kNumber, kSequence: type of a number
  bool big_endian = false;      // of the numbers
  Padding padding = Padding::kNullTerminated;
  Shape inner = {};                     // each element is an array of this shape
  std::vector<std::string> names = {};  // for an enumeration whose values are 0, 1, 2, ...
  std::string refusal = {};             // "compound"
};
Hdf5Type hdf5_type(const Hdf5File& file, const Hdf5Object& object);

enum class Hdf5Index : uint8_t { kOldTree, kSingle, kImplicit, kFixedArray, kExtensible, kTree };

struct Hdf5Layout {
  enum class Class : uint8_t { kCompact, kContiguous, kChunked, kVirtual };
  Class what = Class::kContiguous;
  uint64_t address = kHdf5Undefined;  // kContiguous: address of the data; kChunked: of the index
  uint64_t bytes = UINT64_MAX;        // kContiguous: size of the data, if the message states it
  std::vector<uint8_t> data = {};     // kCompact
  // kChunked:
  Hdf5Index index = Hdf5Index::kOldTree;
  std::vector<uint64_t> chunk = {};  // its dimensions, as many as the dataset has
  uint64_t element_bytes = 0;
  bool edges_unfiltered = false;  // chunks that extend beyond the dataset are stored unfiltered
  uint64_t single_bytes = 0;      // kSingle: size of the filtered chunk; 0: not filtered
  uint32_t single_mask = 0;
};
Hdf5Layout hdf5_layout(const Hdf5File& file, const Hdf5Message& message);

struct Hdf5Filter {
  enum Id : uint16_t { kDeflate = 1, kShuffle = 2, kFletcher32 = 3, kLzf = 32000 };
  uint16_t id = 0;
  std::string name = {};  // its name in the file
  std::vector<uint32_t> values = {};
};
// Filters in the order in which they were applied. Empty: the data is unfiltered.
std::vector<Hdf5Filter> hdf5_filters(const Hdf5File& file, const Hdf5Object& object);
// "blosc (filter 32001)"
std::string name_of(const Hdf5Filter& filter);

// The element for unwritten data, in the file's type; empty: zeros.
std::vector<uint8_t> hdf5_fill_value(const Hdf5File& file, const Hdf5Object& object);

}  // namespace headrace
