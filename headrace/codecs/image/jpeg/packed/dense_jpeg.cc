// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "headrace/base/buffer.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/decode/baseline.h"
#include "headrace/codecs/image/jpeg/headers/markers.h"
#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"
#include "headrace/codecs/image/jpeg/parts/parts.h"
#include "headrace/storage/zstd.h"

namespace headrace {
namespace {

const ErrorCode kDamaged{
    "HR0327", ErrorKind::kData, "damaged dense JPEG",
    "This image of a pack is in the dense form, and its lengths do not match its bytes, or the "
    "original file cannot be restored from it: the pack was damaged or truncated. `headrace scan` "
    "lists all such records. Pack the files again from their originals."};

using Bytes = std::span<const uint8_t>;

// docs/spec/dense-jpeg.md
constexpr std::array<uint8_t, 4> kDenseMagic = {0x8A, 'H', 'R', 'J'};
constexpr uint8_t kFirstVersion = 1, kDenseVersion = 2;  // version 2 uses the second version of the
                                                         // row index
constexpr uint8_t kRemade = 1, kCompressed = 2;          // flags; the orientation is in the bits
                                                         // above
constexpr int kOrientationShift = 4;
constexpr size_t kFixedBytes = 6;

constexpr int kZstdLevel = 9;
// Limits on the size of a decompressed remainder: lengths are checked before allocation.
constexpr size_t kMaxGrowth = 1024, kAlwaysAllowed = 64 << 10;

Error damaged(std::string what) { return {.code = &kDamaged, .what = std::move(what)}; }

// The parts of a blob. Borrows the bytes of the blob.
struct DenseParts {
  uint8_t flags = 0;
  Bytes row_index = {};
  size_t remainder_bytes = 0;  // before compression
  Bytes remainder = {};        // as stored; empty when the JPEG is the original
  Bytes jpeg = {};

  bool remade() const { return flags & kRemade; }
  int orientation() const { return (flags >> kOrientationShift & 7) + 1; }
};

void put_number(std::vector<uint8_t>& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out.push_back(uint8_t(value | 128));
  out.push_back(uint8_t(value));
}

std::optional<size_t> take_number(Bytes& in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 35 && !in.empty(); shift += 7) {
    const uint8_t byte = in[0];
    in = in.subspan(1);
    value |= uint64_t(byte & 127) << shift;
    if (byte < 128) return value;
  }
  return std::nullopt;
}

std::optional<Bytes> take_bytes(Bytes& in, std::optional<size_t> size) {
  if (!size || *size > in.size()) return std::nullopt;
  const Bytes taken = in.first(*size);
  in = in.subspan(*size);
  return taken;
}

Result<DenseParts> parse(Bytes bytes) {
  if (!is_dense_jpeg(bytes) || bytes.size() < kFixedBytes)
    return damaged("its signature is truncated");
  if (bytes[4] < kFirstVersion || bytes[4] > kDenseVersion) {
    return damaged("it has version " + std::to_string(bytes[4]) +
                   ", but this version of Headrace "
                   "reads versions " +
                   std::to_string(kFirstVersion) + " to " + std::to_string(kDenseVersion));
  }
  DenseParts parts;
  parts.flags = bytes[5];
  Bytes in = bytes.subspan(kFixedBytes);
  const std::optional<Bytes> row_index = take_bytes(in, take_number(in));
  if (!row_index) return damaged("its row index is truncated");
  parts.row_index = *row_index;
  if (parts.remade()) {
    const std::optional<size_t> stored = take_number(in);
    const std::optional<size_t> size = parts.flags & kCompressed ? take_number(in) : stored;
    const std::optional<Bytes> remainder = take_bytes(in, stored);
    if (!size || !remainder) return damaged("the rest of the original file is truncated");
    parts.remainder = *remainder;
    parts.remainder_bytes = *size;
  }
  parts.jpeg = in;
  return parts;
}

std::vector<uint8_t> blob(const DenseParts& parts) {
  std::vector<uint8_t> out;
  out.reserve(kFixedBytes + 20 + parts.row_index.size() + parts.remainder.size() +
              parts.jpeg.size());
  out.assign(kDenseMagic.begin(), kDenseMagic.end());
  out.push_back(kDenseVersion);
  out.push_back(parts.flags);
  const auto append = [&](Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); };
  put_number(out, parts.row_index.size());
  append(parts.row_index);
  if (parts.remade()) {
    put_number(out, parts.remainder.size());
    if (parts.flags & kCompressed) put_number(out, parts.remainder_bytes);
    append(parts.remainder);
  }
  append(parts.jpeg);
  return out;
}

bool allowed_growth(size_t stored, size_t size) {
  return size <= kAlwaysAllowed || size / kMaxGrowth <= stored;
}

Result<std::vector<uint8_t>> remainder_of(const DenseParts& parts) {
  if (!(parts.flags & kCompressed)) {
    return std::vector<uint8_t>(parts.remainder.begin(), parts.remainder.end());
  }
  if (!allowed_growth(parts.remainder.size(), parts.remainder_bytes)) {
    return damaged("the rest of the original file is declared too long");
  }
  std::vector<uint8_t> out(parts.remainder_bytes);
  if (!zstd_decompress_into(parts.remainder, out).empty()) {
    return damaged("the rest of the original file does not decompress");
  }
  return out;
}

std::unique_ptr<ImageDecoder> jpeg_decoder() { return Registry<CodecRecord>::find("jpeg")->make(); }

// Bits between entries of a pack's row index: fewer entries than in an index file, because a pack
// may exceed the files' bytes by at most a twentieth, including those of baseline files made from
// progressive ones.
constexpr int kSpacing = 12288;

// The row index of a JPEG; small ones have it, too, because a device could not decode them
// otherwise.
std::vector<uint8_t> row_index_of(Bytes jpeg) {
  Buffer padded(jpeg.size());
  std::memcpy(padded.data(), jpeg.data(), jpeg.size());
  thread_local JpegBaselineDecoder decoder;
  return decoder.row_index(padded.bytes(), kSpacing);
}

// A blob with the original file, unchanged.
std::vector<uint8_t> kept(Bytes jpeg) {
  const std::vector<uint8_t> index = row_index_of(jpeg);
  return blob({.row_index = index, .jpeg = jpeg});
}

// A baseline file made from an image, and the rest of the original as stored.
struct Made {
  std::vector<uint8_t> jpeg, remainder;
  uint8_t flags = kRemade;
  size_t bytes() const { return jpeg.size() + remainder.size(); }
};

Result<Made> make(Bytes original, const JpegParts& parts) {
  Result<std::vector<uint8_t>> jpeg = baseline_jpeg(parts);
  if (!jpeg) return std::move(jpeg.error());
  Made made{.jpeg = std::move(*jpeg), .remainder = zstd_compressed(parts.remainder, kZstdLevel)};
  made.flags |= uint8_t((read_jpeg_markers(original).exif_orientation - 1) << kOrientationShift);
  if (!made.remainder.empty() && made.remainder.size() + 3 < parts.remainder.size() &&
      allowed_growth(made.remainder.size(), parts.remainder.size())) {
    made.flags |= kCompressed;
  } else {
    made.remainder = parts.remainder;
  }
  return made;
}

// Whether our own decoder supports the file, which has one frame.
bool is_ordinary(Bytes jpeg, const JpegParts& parts) {
  const int frame = read_jpeg_markers(jpeg).frame;
  return (frame == 0xC0 || frame == 0xC1) && parts.frame.count <= 3;
}

class DenseJpegDecoder final : public ImageDecoder {
 public:
  DenseJpegDecoder() : jpeg_(jpeg_decoder()) {}

  Result<ImageHeader> read_header(Bytes bytes) override {
    const Result<DenseParts> parts = parse(bytes);
    if (!parts) return Error(parts.error());
    Result<ImageHeader> header = jpeg_->read_header(parts->jpeg);
    if (header && parts->remade()) header->exif_orientation = parts->orientation();
    return header;
  }

  void decode(std::span<DecodeJob> jobs) override {
    inner_.clear();
    for (DecodeJob& job : jobs) {
      const Result<DenseParts> parts = parse(job.bytes);
      job.warnings = 0;
      if (!parts) {
        job.result = Error(parts.error());
        continue;
      }
      DecodeJob& inner = inner_.emplace_back(std::move(job));
      inner.bytes = parts->jpeg;
      inner.row_index = {.known = parts->row_index};
      outer_.resize(inner_.size());
      outer_.back() = &job;
    }
    jpeg_->decode(inner_);
    for (size_t i = 0; i < inner_.size(); ++i) {
      DecodeJob& outer = *outer_[i];
      inner_[i].bytes = outer.bytes;  // moving a job does not move its spans
      inner_[i].row_index = outer.row_index;
      outer = std::move(inner_[i]);
    }
  }

  int lanes() const override { return jpeg_->lanes(); }

  // For packs whose own index has no inner entries, or that have no index.
  Result<std::vector<uint8_t>> row_index(Bytes bytes) override {
    const Result<DenseParts> parts = parse(bytes);
    if (!parts) return Error(parts.error());
    return jpeg_->row_index(parts->jpeg);
  }

  Result<std::vector<CoefficientPlane>> coefficients(Bytes bytes) override {
    const Result<DenseParts> parts = parse(bytes);
    if (!parts) return Error(parts.error());
    return jpeg_->coefficients(parts->jpeg);
  }

 private:
  std::unique_ptr<ImageDecoder> jpeg_;
  std::vector<DecodeJob> inner_;
  std::vector<DecodeJob*> outer_;
};

const CodecRecord kDenseJpeg{
    .name = "dense_jpeg",
    .doc = "The dense form of a packed JPEG: a baseline file preceded by a row index",
    .oracle = "the file that was packed, decoded as JPEG",
    .suffixes = {},
    .sniff = is_dense_jpeg,
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<DenseJpegDecoder>(); },
    .enters_rows = true,
    .opaque = true};
const Register<CodecRecord> registered_dense_jpeg(kDenseJpeg);

}  // namespace

bool is_dense_jpeg(Bytes first_bytes) {
  return first_bytes.size() >= kDenseMagic.size() &&
         std::equal(kDenseMagic.begin(), kDenseMagic.end(), first_bytes.begin());
}

std::optional<DenseJpegView> view_of_dense(Bytes stored) {
  const Result<DenseParts> parts = parse(stored);
  if (!parts) return std::nullopt;
  return DenseJpegView{parts->jpeg, parts->row_index};
}

Result<std::vector<uint8_t>> dense_from_jpeg(Bytes jpeg) {
  const Result<JpegParts> parts = split_jpeg(jpeg);
  if (!parts) return Error(parts.error());
  const Result<Made> made = make(jpeg, *parts);
  if (!made || (is_ordinary(jpeg, *parts) && jpeg.size() <= made->bytes())) return kept(jpeg);
  const std::vector<uint8_t> index = row_index_of(made->jpeg);
  std::vector<uint8_t> out = blob({.flags = made->flags,
                                   .row_index = index,
                                   .remainder_bytes = parts->remainder.size(),
                                   .remainder = made->remainder,
                                   .jpeg = made->jpeg});
  const Result<std::vector<uint8_t>> again = jpeg_from_dense(out);
  if (!again || !std::ranges::equal(*again, jpeg)) return kept(jpeg);
  return out;
}

Result<std::vector<uint8_t>> jpeg_from_dense(Bytes stored) {
  const Result<DenseParts> parts = parse(stored);
  if (!parts) return Error(parts.error());
  if (!parts->remade()) return std::vector<uint8_t>(parts->jpeg.begin(), parts->jpeg.end());
  Result<std::vector<uint8_t>> remainder = remainder_of(*parts);
  if (!remainder) return remainder;
  Result<JpegParts> image = read_jpeg_parts(parts->jpeg);
  if (!image) return damaged("its JPEG is damaged: " + image.error().what);
  image->remainder = std::move(*remainder);
  Result<std::vector<uint8_t>> original = join_jpeg(*image);
  if (!original) return damaged(original.error().what);
  return original;
}

}  // namespace headrace
