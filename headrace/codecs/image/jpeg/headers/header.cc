// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/headers/header.h"

#include "headrace/codecs/image/jpeg/headers/header_reader.h"

namespace headrace {
namespace {

// The header of the single scan.
bool take_scan(std::span<const uint8_t> body, JpegHeader& header) {
  JpegFrame& image = header.frame;
  const JpegTables& tables = header.tables;
  const size_t count = size_t(image.count);
  if (count == 0 || body.size() != 4 + 2 * count || body[0] != count) return false;
  for (size_t c = 0; c < count; ++c) {
    JpegComponent& component = image.component[c];
    const int dc = body[2 + 2 * c] >> 4, ac = body[2 + 2 * c] & 15;
    if (body[1 + 2 * c] != component.id || dc > 3 || ac > 3) return false;
    if (!(tables.dc_seen >> dc & 1) || !(tables.ac_seen >> ac & 1)) return false;
    if (!(tables.quantization_seen >> component.quantization_slot & 1)) return false;
    header.dc_slot[c] = uint8_t(dc);
    header.ac_slot[c] = uint8_t(ac);
    component.quantization = tables.quantization[component.quantization_slot];
  }
  // Ss = 0, Se = 63, Ah = Al = 0.
  if (body[1 + 2 * count] != 0 || body[2 + 2 * count] != 63 || body[3 + 2 * count] != 0) {
    return false;
  }
  return true;
}

}  // namespace

bool read_jpeg_header(std::span<const uint8_t> bytes, JpegHeader& header) {
  JpegHeaderReader reader(JpegHeaderReader::Kind::kSequential, header);
  if (bytes.size() < 4 || bytes[0] != 0xFF || bytes[1] != jpeg_marker::kSoi) return false;
  size_t at = 2;
  JpegSegment segment;
  while (next_jpeg_segment(bytes, at, segment)) {
    if (segment.marker == jpeg_marker::kSos) {
      header.scan = at;
      if (!take_scan(segment.body, header)) return false;
      reader.find_color();
      return true;
    }
    if (!reader.take(segment)) return false;
  }
  return false;
}

}  // namespace headrace
