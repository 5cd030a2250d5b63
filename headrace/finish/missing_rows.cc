// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/missing_rows.h"

#include <vector>

#include "headrace/codecs/image/jpeg/decode/baseline.h"
#include "headrace/codecs/image/jpeg/decode/row_index.h"
#include "headrace/codecs/image/jpeg/headers/header.h"

namespace headrace {

MissingRows missing_rows(std::span<const uint8_t> jpeg, std::span<const uint8_t> row_index) {
  if (covers_all_rows(row_index)) return MissingRows::kNone;
  JpegHeader header;
  return read_jpeg_header(jpeg, header) ? MissingRows::kUnknown : MissingRows::kNever;
}

bool may_find_rows(const EncodedImage& picture, std::span<const uint8_t> jpeg) {
  constexpr size_t kSmall = size_t{8} << 10;
  return picture.row_index.store || (picture.codec->name == "dense_jpeg" && jpeg.size() <= kSmall);
}

std::span<const uint8_t> find_rows(const EncodedImage& picture, std::span<const uint8_t> jpeg) {
  thread_local JpegBaselineDecoder decoder;
  thread_local std::vector<uint8_t> rows;
  if (!may_find_rows(picture, jpeg)) return {};
  rows = decoder.row_index(jpeg);
  if (!covers_all_rows(rows)) return {};
  const RowIndexSlot& slot = picture.row_index;
  if (slot.store) slot.store->learned(slot.image, rows);
  return rows;
}

}  // namespace headrace
