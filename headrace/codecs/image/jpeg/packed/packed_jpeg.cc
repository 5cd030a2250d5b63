// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"

#include <algorithm>
#include <new>

#include "headrace/base/buffer.h"
#include "headrace/codecs/image/jpeg/headers/markers.h"
#include "headrace/codecs/image/jpeg/packed/form.h"
#include "headrace/codecs/image/jpeg/parts/parts.h"

namespace headrace {
namespace {

Error not_packed(const char* reason) { return Error{.code = &kNotPacked, .what = reason}; }

bool same_planes(const std::vector<CoefficientPlane>& a, const std::vector<CoefficientPlane>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.blocks_wide == y.blocks_wide && x.blocks_high == y.blocks_high &&
           x.h_sampling == y.h_sampling && x.v_sampling == y.v_sampling &&
           x.quantization == y.quantization && x.coefficients == y.coefficients;
  });
}

// Coefficients and remainder of packed bytes that have padding after them.
Result<JpegParts> parts_of(std::span<const uint8_t> padded) {
  const Result<PackedImage> image = parse_packed_jpeg(padded);
  if (!image) return Error(image.error());
  Result<std::vector<CoefficientPlane>> planes = unpack_coefficients(*image);
  if (!planes) return std::move(planes.error());
  Result<std::vector<uint8_t>> remainder = unpack_remainder(*image);
  if (!remainder) return std::move(remainder.error());
  return JpegParts{image->frame, std::move(*planes), std::move(*remainder)};
}

Buffer padded(std::span<const uint8_t> bytes) {
  Buffer buffer(bytes.size());
  std::copy(bytes.begin(), bytes.end(), buffer.data());
  return buffer;
}

Result<std::vector<uint8_t>> pack_fast(std::span<const uint8_t> jpeg) {
  const Result<JpegParts> parts = read_jpeg_parts(jpeg);
  if (!parts) return Error(parts.error());
  Result<std::vector<uint8_t>> packed = write_packed_jpeg(
      {parts->frame, parts->planes, read_jpeg_markers(jpeg).exif_orientation, parts->remainder});
  if (!packed) return packed;
  // Permanently stored data must be verified by a round trip; these parts have not been so far.
  const Result<JpegParts> again = parts_of(padded(*packed).bytes());
  if (!again) return Error(again.error());
  if (!same_planes(again->planes, parts->planes)) return not_packed("coefficients differ");
  const Result<std::vector<uint8_t>> file = join_jpeg(*again);
  if (!file) return Error(file.error());
  if (!std::equal(file->begin(), file->end(), jpeg.begin(), jpeg.end())) {
    return not_packed("bytes differ");
  }
  return packed;
}

}  // namespace

Result<std::vector<uint8_t>> pack_jpeg(std::span<const uint8_t> jpeg, PackLevel level) {
  try {
    return level == PackLevel::kFast ? pack_fast(jpeg) : dense_from_jpeg(jpeg);
  } catch (const std::bad_alloc&) {
    return not_packed("no memory");
  }
}

Result<std::vector<uint8_t>> unpack_jpeg(std::span<const uint8_t> packed) {
  if (is_dense_jpeg(packed)) return jpeg_from_dense(packed);
  try {
    const Result<JpegParts> parts = parts_of(padded(packed).bytes());
    if (!parts) return Error(parts.error());
    return join_jpeg(*parts);
  } catch (const std::bad_alloc&) {
    return not_packed("no memory");
  }
}

bool is_packed_jpeg(std::span<const uint8_t> first_bytes) {
  return is_packed_image(first_bytes) || is_dense_jpeg(first_bytes);
}

}  // namespace headrace
