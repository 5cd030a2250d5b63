// SPDX-License-Identifier: Apache-2.0
// Coefficients and remainder -> packed form, and back.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "headrace/codecs/image/jpeg/packed/form.h"
#include "headrace/storage/zstd.h"

namespace headrace {
namespace {

constexpr int kCoefficientLevel = 9;
// A remainder with a higher compression ratio is stored uncompressed, and rejected when read, to
// prevent decompression bombs.
constexpr size_t kMaxSwelling = 1024;

template <class T>
void put(std::vector<uint8_t>& out, size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}

Error too_large(const char* what) {
  return Error{.code = &kNotPacked, .what = std::string(what) + " larger than 4 GiB"};
}

// Index of each component's table among the distinct ones, which are appended to `out`.
std::array<uint8_t, 4> put_tables(const ImageToPack& input, std::vector<uint8_t>& out) {
  std::array<uint8_t, 4> number{};
  uint8_t tables = 0;
  for (int c = 0; c < input.frame.count; ++c) {
    const auto& steps = input.planes[c].quantization;
    int same = 0;
    while (same < c && input.planes[same].quantization != steps) ++same;
    number[c] = same < c ? number[same] : tables++;
    if (same < c) continue;
    size_t at = out.size();
    out.resize(at + kPackedTableBytes);
    for (const uint8_t natural : kNaturalFromZigzag) {
      put(out, at, steps[natural]);
      at += 2;
    }
  }
  out[17] = tables;
  return number;
}

std::vector<uint8_t> header_of(const ImageToPack& input) {
  const JpegFrame& frame = input.frame;
  std::vector<uint8_t> out(kPackedHeaderBytes + kPackedComponentBytes * frame.count);
  std::copy(kPackedSignature.begin(), kPackedSignature.end(), out.begin());
  out[8] = kPackedVersion;
  out[10] = static_cast<uint8_t>(frame.count);
  out[11] = static_cast<uint8_t>(frame.color);
  put(out, 12, static_cast<uint16_t>(frame.width));
  put(out, 14, static_cast<uint16_t>(frame.height));
  out[16] = static_cast<uint8_t>(input.exif_orientation);
  const std::array<uint8_t, 4> table = put_tables(input, out);
  for (int c = 0; c < frame.count; ++c) {
    const JpegComponent& component = frame.component[c];
    const size_t at = kPackedHeaderBytes + kPackedComponentBytes * c;
    out[at] = static_cast<uint8_t>(component.id);
    out[at + 1] =
        static_cast<uint8_t>(input.planes[c].h_sampling << 4 | input.planes[c].v_sampling);
    out[at + 2] = static_cast<uint8_t>(component.quantization_slot);
    out[at + 3] = table[c];
  }
  return out;
}

// Appends all rows in order. Returns their lengths.
std::vector<uint32_t> pack_rows(const ImageToPack& input, std::vector<uint8_t>& rows) {
  std::vector<uint32_t> lengths;
  for (int m = 0; m < input.frame.mcus_high; ++m) {
    for (int c = 0; c < input.frame.count; ++c) {
      const CoefficientPlane& plane = input.planes[c];
      const int v = input.frame.component[c].v;
      for (int y = m * v; y < std::min((m + 1) * v, plane.blocks_high); ++y) {
        const size_t before = rows.size();
        pack_row(plane.coefficients.data() + static_cast<size_t>(y) * plane.blocks_wide * 64,
                 plane.blocks_wide, kNaturalFromZigzag, rows);
        lengths.push_back(static_cast<uint32_t>(rows.size() - before));
      }
    }
  }
  return lengths;
}

void put_lengths(const std::vector<uint32_t>& lengths, std::vector<uint8_t>& out) {
  const bool longs = *std::max_element(lengths.begin(), lengths.end()) > 0xFFFF;
  if (longs) out[9] |= kLongRows;
  size_t at = out.size();
  out.resize(at + lengths.size() * (longs ? 4 : 2));
  for (const uint32_t length : lengths) {
    if (longs) {
      put(out, at, length);
    } else {
      put(out, at, static_cast<uint16_t>(length));
    }
    at += longs ? 4 : 2;
  }
}

void put_remainder(std::span<const uint8_t> remainder, std::vector<uint8_t>& out) {
  put(out, 28, static_cast<uint32_t>(remainder.size()));
  const std::vector<uint8_t> small = zstd_compressed(remainder, kCoefficientLevel);
  if (!small.empty() && small.size() < remainder.size() &&
      small.size() >= remainder.size() / kMaxSwelling) {
    out[9] |= kCompressedRemainder;
    remainder = small;
  }
  put(out, 24, static_cast<uint32_t>(remainder.size()));
  out.insert(out.end(), remainder.begin(), remainder.end());
}

}  // namespace

const ErrorCode kNotPacked{
    "HR0324", ErrorKind::kUnsupported, "JPEG cannot be packed",
    "The image cannot be packed in a way that restores the identical file. It is stored unchanged "
    "and counted under this reason; it loads as before, only no faster."};

Result<std::vector<uint8_t>> write_packed_jpeg(const ImageToPack& input) {
  std::vector<uint8_t> out = header_of(input), rows;
  const std::vector<uint32_t> lengths = pack_rows(input, rows);
  if (rows.size() > UINT32_MAX) return too_large("coefficients");
  if (input.remainder.size() > UINT32_MAX) return too_large("markers");
  put(out, 20, static_cast<uint32_t>(rows.size()));
  put_lengths(lengths, out);
  out.reserve(out.size() + rows.size() + input.remainder.size());
  out.insert(out.end(), rows.begin(), rows.end());
  put_remainder(input.remainder, out);
  return out;
}

Result<std::vector<CoefficientPlane>> unpack_coefficients(const PackedImage& image) {
  const JpegFrame& frame = image.frame;
  std::vector<CoefficientPlane> planes(frame.count);
  PackedRows rows;
  rows.begin(image);
  BlockPlanes blocks;
  for (int c = 0; c < frame.count; ++c) {
    const JpegComponent& component = frame.component[c];
    CoefficientPlane& plane = planes[c];
    plane.blocks_wide = component.blocks_wide;
    plane.blocks_high = component.blocks_high;
    plane.h_sampling = image.sampling[c][0];
    plane.v_sampling = image.sampling[c][1];
    plane.quantization = component.quantization;
    const size_t row_values = static_cast<size_t>(plane.blocks_wide) * 64;
    plane.coefficients.resize(row_values * plane.blocks_high);
    blocks.resize(plane.blocks_wide);
    for (int y = 0; y < plane.blocks_high; ++y) {
      PackedRow row;
      if (!rows.open(c, y, row) || !unpack_row(row, 0, row.count, blocks)) {
        return damaged_row(rows, c, y);
      }
      coefficients_of_planes(blocks, 0, row.count, kNaturalFromZigzag,
                             plane.coefficients.data() + row_values * y);
    }
  }
  return planes;
}

Result<std::vector<uint8_t>> unpack_remainder(const PackedImage& image) {
  const std::span<const uint8_t> stored = image.remainder;
  if (!image.compressed) return std::vector<uint8_t>(stored.begin(), stored.end());
  const auto bad = [&](std::string what) {
    return Error{.code = &kPackedDamaged,
                 .what = std::move(what),
                 .where = Where{.offset = static_cast<int64_t>(image.rows_end)}};
  };
  // Both sizes come from the file: memory is only allocated if they agree.
  if (zstd_content_size(stored) != image.remainder_bytes) {
    return bad("the remainder's size does not match the header");
  }
  if (image.remainder_bytes / kMaxSwelling > stored.size())
    return bad("the remainder expands too much");
  std::vector<uint8_t> out(image.remainder_bytes);
  const std::string_view wrong = zstd_decompress_into(stored, out);
  if (!wrong.empty()) return bad("the remainder: " + std::string(wrong));
  return out;
}

}  // namespace headrace
