// SPDX-License-Identifier: Apache-2.0
// Finds the codec for a picture's bytes, or the error if there is none.
#include <algorithm>
#include <string>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/codecs/image/foreign_pictures.h"
#include "headrace/image/render.h"

namespace headrace {
namespace {

const ErrorCode kUnknownPicture{
    "HR0340", ErrorKind::kData, "unknown image format",
    "Images are recognized by their first bytes, never by name, and these match no codec in this "
    "build. Often the file is of a different type (an HTML page from a failed download, a text "
    "file), or empty. `headrace formats` lists the codecs."};

Error unknown_picture(std::span<const uint8_t> bytes) {
  Error error{.code = &kUnknownPicture, .what = "the file is empty"};
  const std::string_view name = foreign_name(bytes);
  if (!name.empty()) {
    error.what = "this is " + std::string(name) + ", for which this build has no codec";
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
      bytes.empty()  ? "download the file again, or leave it out"
      : name.empty() ? "check the file: it is not an image, or is in an unsupported format"
      : name.ends_with("image")
          ? "convert such files to PNG or JPEG (Pillow reads most kinds), or open a Python "
            "object that decodes them"
          : "download the file again, or leave it out";
  return error;
}

}  // namespace

Result<EncodedPicture> Renderer::open(std::span<const uint8_t> bytes, const DecodeLimits& limits,
                                      int page) {
  const CodecRecord* const codec = codec_of(bytes);
  if (!codec) return unknown_picture(bytes);
  Result<ImageHeader> header = decoder(*codec).read_page_header(bytes, page);
  if (!header) return std::move(header.error());
  if (Result<void> allowed = check_limits(*header, limits); !allowed) {
    return std::move(allowed.error());
  }
  return EncodedPicture{.bytes = bytes, .codec = codec, .header = *header, .page = page};
}

}  // namespace headrace
