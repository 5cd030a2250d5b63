// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/codec.h"

#include <algorithm>

#include "headrace/base/from_registries.h"

namespace headrace {
namespace {

const ErrorCode kTooManyPixels{
    "HR0310", ErrorKind::kResource, "image too large",
    "The header declares more pixels than the limit allows, so nothing was allocated. A small "
    "file can declare any size; real photos stay far below the limit. Raise max_pixels= if the "
    "image is genuine."};

const ErrorCode kNoCoefficients{
    "HR0311", ErrorKind::kUnsupported, "JPEG coefficients not available",
    "Only JPEG images have DCT coefficients; this codec decodes to pixels only."};

const ErrorCode kNoSuchPage{
    "HR0349", ErrorKind::kData, "page not found",
    "page= selects an image in a file with several images (TIFF), and this file has fewer images. "
    "Pages are counted from 0."};

const ErrorCode kCorruptImage{
    "HR0345", ErrorKind::kData, "corrupt image",
    "The image's header or compressed pixels are invalid: usually a download or a disk damaged "
    "the file. Such images are not repaired. Restore the file, or let on_error= decide what "
    "happens to such records."};

const ErrorCode kTruncatedImage{
    "HR0346", ErrorKind::kData, "truncated image",
    "The file ends before the requested pixels. The usual cause is an interrupted download or "
    "copy. Restore the file, or let on_error= decide what happens to such records."};

const ErrorCode kUnsupportedImage{
    "HR0347", ErrorKind::kUnsupported, "unsupported image",
    "The file is valid, but uses an unsupported part of its format, or has values that do not fit "
    "into 8 bits per sample. Convert such files once (Pillow, ImageMagick), or decode them in a "
    "Python source."};

const ErrorCode kTooLargeImage{
    "HR0348", ErrorKind::kResource, "image exceeds the memory limit",
    "Decoding exceeded the memory limit for an image of this size, or the machine is out of "
    "memory. Valid files stay below the limit."};

constexpr const char* kFetchAgain = "download the file again, or skip such records (on_error=)";

}  // namespace

Error no_such_page(int page, int pages) {
  return {.code = &kNoSuchPage,
          .what = "page " + std::to_string(page) + " was requested, but the file's page count is " +
                  std::to_string(pages),
          .hint = "page=0 is the first page"};
}

int channels_of(ColorMode mode, const ImageHeader& header) {
  switch (mode) {
    case ColorMode::kRGB:
      return 3;
    case ColorMode::kGray:
      return 1;
    case ColorMode::kRGBA:
      return 4;
    case ColorMode::kStored:
      return header.palette ? 1 : header.channels;
  }
  return 3;
}

Result<ImageHeader> ImageDecoder::read_page_header(std::span<const uint8_t> bytes, int page) {
  if (page == 0) return read_header(bytes);
  return no_such_page(page, 1);
}

Result<std::vector<uint8_t>> ImageDecoder::row_index(std::span<const uint8_t>) {
  return std::vector<uint8_t>();
}

Result<std::vector<CoefficientPlane>> ImageDecoder::coefficients(std::span<const uint8_t>) {
  return Error{.code = &kNoCoefficients, .what = "this codec does not provide DCT coefficients"};
}

const CodecRecord* codec_of(std::span<const uint8_t> first_bytes) {
  static FromRegistries<std::vector<const CodecRecord*>> codecs;
  const auto& known = codecs.get([] {
    std::vector<const CodecRecord*> out = Registry<CodecRecord>::all();
    std::ranges::stable_partition(out, [](const CodecRecord* codec) { return !codec->plugged; });
    return out;
  });
  for (const CodecRecord* codec : known) {
    if (codec->sniff(first_bytes)) return codec;
  }
  return nullptr;
}

bool begins_like_image(std::span<const uint8_t> bytes) {
  constexpr size_t kFirst = 16;
  return codec_of(bytes.first(std::min(bytes.size(), kFirst))) != nullptr;
}

Result<void> check_limits(const ImageHeader& header, const DecodeLimits& limits) {
  const int64_t pixels = int64_t{header.width} * header.height;
  if (pixels <= limits.max_pixels) return {};
  return Error{.code = &kTooManyPixels,
               .what = "the header declares " + std::to_string(header.width) + " x " +
                       std::to_string(header.height) + " pixels, the cap is " +
                       std::to_string(limits.max_pixels),
               .hint = "raise max_pixels= if this image is genuine"};
}

Error corrupt_image(std::string_view kind, std::string what) {
  return {.code = &kCorruptImage,
          .what = "no valid " + std::string(kind) + " image: " + std::move(what),
          .hint = kFetchAgain};
}

Error truncated_image(std::string_view kind, size_t bytes) {
  Error error{.code = &kTruncatedImage,
              .what = "the " + std::string(kind) + " image ends too early",
              .hint = kFetchAgain};
  error.where.offset = static_cast<int64_t>(bytes);
  return error;
}

Error unsupported_image(std::string_view kind, std::string what) {
  return {.code = &kUnsupportedImage,
          .what = "a " + std::string(kind) + " image " + std::move(what),
          .hint = "convert such files (Pillow), or open a Python object that decodes them"};
}

Error too_large_image(std::string_view kind) {
  return {.code = &kTooLargeImage,
          .what = "decoding this " + std::string(kind) + " image takes too much memory",
          .hint = "skip such records (on_error=)"};
}

}  // namespace headrace
