// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/missing_rows.h"

#include <memory>
#include <utility>

#include "headrace/codecs/image/jpeg/decode/row_index.h"
#include "headrace/codecs/image/jpeg/headers/header.h"

namespace headrace {

MissingRows missing_rows(std::span<const uint8_t> jpeg, std::span<const uint8_t> row_index) {
  if (knows_all_rows(row_index)) return MissingRows::kNone;
  JpegHeader header;
  return read_jpeg_header(jpeg, header) ? MissingRows::kUnknown : MissingRows::kNever;
}

std::vector<uint8_t> learn_rows(const EncodedPicture& picture) {
  const RowIndexSlot& slot = picture.row_index;
  if (!slot.store) return {};
  const std::unique_ptr<ImageDecoder> decoder = picture.codec->make();
  Result<std::vector<uint8_t>> rows = decoder->row_index(picture.bytes);
  if (!rows || !knows_all_rows(*rows)) return {};
  slot.store->learned(slot.picture, *rows);
  return std::move(*rows);
}

}  // namespace headrace
