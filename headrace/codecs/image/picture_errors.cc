// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/picture_errors.h"

namespace headrace {
namespace {

const ErrorCode kCorruptPicture{
    "HR0345", ErrorKind::kData, "corrupt image",
    "The image's header or compressed pixels are invalid: usually a download or a disk damaged "
    "the file. Such images are not repaired. Restore the file, or let on_error= decide what "
    "happens to such records."};

const ErrorCode kTruncatedPicture{
    "HR0346", ErrorKind::kData, "truncated image",
    "The file ends before the requested pixels. Usual causes are an interrupted download or copy. "
    "Restore the file, or let on_error= decide what happens to such records."};

const ErrorCode kUnreadPicture{
    "HR0347", ErrorKind::kUnsupported, "unsupported image",
    "The file is valid, but uses an unsupported part of its format, or has values that 8 bits per "
    "sample would truncate. Convert such files once (Pillow, ImageMagick), or open a Python "
    "object that decodes them."};

const ErrorCode kTooLargePicture{
    "HR0348", ErrorKind::kResource, "image exceeds the memory limit",
    "Decoding would need more memory than an image of this size may use, or the machine has none "
    "left. A valid file does not do the former."};

constexpr const char* kFetchAgain =
    "download the file again, or leave such records out (on_error=)";

}  // namespace

Error corrupt_picture(std::string_view kind, std::string what) {
  return {.code = &kCorruptPicture,
          .what = "no valid " + std::string(kind) + " image: " + std::move(what),
          .hint = kFetchAgain};
}

Error truncated_picture(std::string_view kind, size_t bytes) {
  Error error{.code = &kTruncatedPicture,
              .what = "the " + std::string(kind) + " image ends too early",
              .hint = kFetchAgain};
  error.where.offset = static_cast<int64_t>(bytes);
  return error;
}

Error unread_picture(std::string_view kind, std::string what) {
  return {.code = &kUnreadPicture,
          .what = "a " + std::string(kind) + " image " + std::move(what),
          .hint = "convert such files (Pillow), or open a Python object that decodes them"};
}

Error too_large_picture(std::string_view kind) {
  return {.code = &kTooLargePicture,
          .what = "decoding this " + std::string(kind) + " image takes too much memory",
          .hint = "leave such records out (on_error=)"};
}

}  // namespace headrace
