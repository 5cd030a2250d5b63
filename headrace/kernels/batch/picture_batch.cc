// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/picture_batch.h"

#include <string>

#include "headrace/base/error.h"

namespace headrace {
namespace {

const ErrorCode kBadPictures{
    "HR0862", ErrorKind::kConfig, "unsupported input for a batch kernel",
    "Batch kernels take dense or strided images of one to four channels, whose elements are one, "
    "two or four bytes wide (uint8, float16, bfloat16, float32, and integers of these sizes), and "
    "value mappings from uint8 only."};

const uint8_t* elements_of(const StoreTable& table) {
  switch (size_of(table.dtype)) {
    case 1:
      return table.u8.data();
    case 2:
      return reinterpret_cast<const uint8_t*>(table.u16.data());
    default:
      return reinterpret_cast<const uint8_t*>(table.f32.data());
  }
}

}  // namespace

void check(const PictureBatch& batch) {
  if (batch.channels < 1 || batch.channels > PictureBatch::kMaxChannels) {
    raise(kBadPictures,
          "an image of a batch has 1 to 4 channels (got " + std::to_string(batch.channels) + ")",
          "deliver it as a tensor, without transforms on the device");
  }
  if (batch.map.bytes != 1 && batch.map.bytes != 2 && batch.map.bytes != 4) {
    raise(kBadPictures,
          "an element has 1, 2 or 4 bytes (got " + std::to_string(batch.map.bytes) + ")",
          "use uint8, float16, bfloat16 or float32");
  }
  if (batch.height < 0 || batch.width < 0 || batch.to_height < 0 || batch.to_width < 0 ||
      batch.count < 0) {
    raise(kBadPictures,
          "sizes must not be negative (got " + std::to_string(batch.count) + " images of " +
              std::to_string(batch.height) + " x " + std::to_string(batch.width) + ", to " +
              std::to_string(batch.to_height) + " x " + std::to_string(batch.to_width) + ")");
  }
}

std::vector<uint8_t> element_table(std::span<const StoreTable* const> tables) {
  std::vector<uint8_t> bytes;
  for (const StoreTable* const table : tables) {
    const uint8_t* const elements = elements_of(*table);
    bytes.insert(bytes.end(), elements, elements + 256 * size_of(table->dtype));
  }
  return bytes;
}

uint32_t element_bits(const StoreTable& table, uint8_t sample) {
  const size_t bytes = size_of(table.dtype);
  uint32_t bits = 0;  // every supported machine is little-endian
  std::memcpy(&bits, elements_of(table) + sample * bytes, bytes);
  return bits;
}

}  // namespace headrace
