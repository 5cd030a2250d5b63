// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/tiff_checksums.h"

#include <array>
#include <memory>
#include <span>

#include "headrace/base/buffer.h"
#include "headrace/codecs/image/tiff_session.h"
#include "headrace/storage/unpacker.h"

namespace headrace {
namespace {

Packing packing_of(uint16_t compression) {
  switch (compression) {
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
      return Packing::kZlib;
    case COMPRESSION_ZSTD:
      return Packing::kZstd;
    default:
      return Packing::kNone;
  }
}

}  // namespace

std::string wrong_checksum(const TiffSession& session, uint32_t number) {
  const TiffLibrary& tiff = tiff_library();
  TIFF* const file = session.file();
  uint16_t compression = COMPRESSION_NONE, order = FILLORDER_MSB2LSB;
  tiff.get_defaulted(file, TIFFTAG_COMPRESSION, &compression);
  tiff.get_defaulted(file, TIFFTAG_FILLORDER, &order);
  const Packing packing = packing_of(compression);
  if (packing == Packing::kNone || order != FILLORDER_MSB2LSB) return {};
  const uint64_t bytes = tiff.stored_bytes(file, number);
  if (bytes == 0 || bytes > session.bytes().size()) return "a strip or tile ends early";
  Buffer stored(size_t{bytes});
  const auto read = tiff.is_tiled(file) ? tiff.read_raw_tile : tiff.read_raw_strip;
  if (read(file, number, stored.data(), tmsize_t(bytes)) != tmsize_t(bytes)) {
    return "a strip or tile ends early";
  }
  const std::unique_ptr<Unpacker> unpacker = Unpacker::make(packing);
  std::span<const uint8_t> rest = stored.bytes();
  std::array<uint8_t, 16384> out;  // the output is discarded
  while (true) {
    const Unpacker::Step step = unpacker->run(rest, out);
    if (!step.result) return "the checksum of a strip or tile is wrong";
    if (step.ended) return {};
    rest = rest.subspan(step.consumed);
    if (rest.empty() && step.produced < out.size()) return "a strip or tile lacks its checksum";
  }
}

}  // namespace headrace
