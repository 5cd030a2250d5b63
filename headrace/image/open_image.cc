// SPDX-License-Identifier: Apache-2.0
// Finds the codec for an image's bytes, or the error if there is none.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/image/render.h"

namespace headrace {
namespace {

using namespace std::string_view_literals;

// A format that no codec here may read, or another file that is often mistaken for an image.
struct Signature {
  size_t at;
  std::string_view bytes, name;
  std::string_view first = {};  // first bytes, if those at `at` are not specific enough
};

// Longer signatures come before shorter ones with the same start.
constexpr Signature kSignatures[] = {
    {8, "WEBP"sv, "a WebP image", "RIFF"sv},
    {0, "GIF87a"sv, "a GIF image"},
    {0, "GIF89a"sv, "a GIF image"},
    {0, "II*\0"sv, "a TIFF image"},
    {0, "MM\0*"sv, "a TIFF image"},
    {0, "II+\0"sv, "a BigTIFF image"},
    {0, "MM\0+"sv, "a BigTIFF image"},
    {4, "ftypavi"sv, "an AVIF image"},
    {4, "ftyphei"sv, "a HEIC image"},
    {4, "ftyphev"sv, "a HEIC image"},
    {4, "ftypmif1"sv, "a HEIF image"},
    {4, "ftypmsf1"sv, "a HEIF image"},
    {4, "ftyp"sv, "an MP4 file"},
    {0, "\0\0\0\x0CjP  \r\n\x87\n"sv, "a JPEG 2000 image"},
    {0, "\xFF\x4F\xFF\x51"sv, "a JPEG 2000 image"},
    {0, "\0\0\0\x0CJXL \r\n\x87\n"sv, "a JPEG XL image"},
    {0, "\xFF\x0A"sv, "a JPEG XL image"},
    {0, "\xFF\xD8"sv, "a file with the signature of a JPEG (FF D8) but no marker after it"},
    {0, "8BPS"sv, "a Photoshop document"},
    {0, "qoif"sv, "a QOI image"},
    {0, "v/1\x01"sv, "an OpenEXR image"},
    {0, "#?RADIANCE"sv, "a Radiance image"},
    {0, "%PDF"sv, "a PDF document"},
    {0, "\0\0\1\0"sv, "a Windows icon"},
    {0, "\x1F\x8B"sv, "a gzip file"},
    {0, "PK\3\4"sv, "a zip file"},
    {0, "<!DOCTYPE"sv, "an HTML page"},
    {0, "<!doctype"sv, "an HTML page"},
    {0, "<html"sv, "an HTML page"},
    {0, "<svg"sv, "an SVG drawing"},
    {0, "<?xml"sv, "an XML file"},
    {0, "version https://"sv, "a git-lfs pointer whose file was not fetched"},
    {0, "BM"sv, "a BMP image"},
};

// P1 to P7 and whitespace: bitmaps, graymaps, pixmaps.
bool is_netpbm(std::span<const uint8_t> bytes) {
  return bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7' &&
         (bytes[2] == ' ' || (bytes[2] >= '\t' && bytes[2] <= '\r'));
}

// "a WebP image", "an HTML page": from the first bytes; empty if unknown.
std::string_view known_format_name(std::span<const uint8_t> first_bytes) {
  for (const Signature& signature : kSignatures) {
    if (has_text(first_bytes, signature.bytes, signature.at) &&
        has_text(first_bytes, signature.first)) {
      return signature.name;
    }
  }
  return is_netpbm(first_bytes) ? "a PNM image" : "";
}

const ErrorCode kUnknownImage{
    "HR0340", ErrorKind::kData, "unknown image format",
    "Images are recognized by their first bytes, never by name, and the first bytes of this file "
    "match no codec in this build. Often the file is of a different type (an HTML page from a "
    "failed download, a text file), or empty. `headrace formats` lists the codecs."};

Error unknown_image(std::span<const uint8_t> bytes) {
  Error error{.code = &kUnknownImage, .what = "the file is empty"};
  const std::string_view name = known_format_name(bytes);
  if (!name.empty()) {
    error.what = "this is " + std::string(name) + ", which this build cannot decode";
  } else if (!bytes.empty()) {
    constexpr char kHex[] = "0123456789abcdef";
    error.what = "no codec recognizes these bytes; they begin with";
    for (uint8_t byte : bytes.first(std::min<size_t>(bytes.size(), 8))) {
      error.what += {' ', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  for (const CodecRecord* codec : Registry<CodecRecord>::all()) {
    error.note += (error.note.empty() ? "codecs: " : ", ") + std::string(codec->name);
  }
  error.hint =
      bytes.empty()  ? "download the file again, or skip it"
      : name.empty() ? "check the file: it is not an image, or is in an unsupported format"
      : name.ends_with("image")
          ? "convert such files to PNG or JPEG (Pillow reads most kinds), or decode them in a "
            "Python source"
          : "download the file again, or skip it";
  return error;
}

}  // namespace

Result<EncodedImage> Renderer::open(std::span<const uint8_t> bytes, const DecodeLimits& limits,
                                    int page) {
  const CodecRecord* const codec = codec_of(bytes);
  if (!codec) return unknown_image(bytes);
  Result<ImageHeader> header = decoder(*codec).read_page_header(bytes, page);
  if (!header) return std::move(header.error());
  if (Result<void> allowed = check_limits(*header, limits); !allowed) {
    return std::move(allowed.error());
  }
  return EncodedImage{.bytes = bytes, .codec = codec, .header = *header, .page = page};
}

}  // namespace headrace
