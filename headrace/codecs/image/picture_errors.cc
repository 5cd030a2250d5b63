// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/picture_errors.h"

namespace headrace {
namespace {

const ErrorCode kCorruptPicture{
    "HR0345", ErrorKind::kData, "corrupt picture",
    "The picture's header or its compressed pixels make no sense: usually a download or a disk has "
    "damaged the file. Nothing of such pictures is repaired. Restore the file, or let on_error= "
    "decide what happens to such records."};

const ErrorCode kTruncatedPicture{
    "HR0346", ErrorKind::kData, "truncated picture",
    "The file ends before the pixels that were asked for. Usual causes are an interrupted download "
    "or copy. Restore the file, or let on_error= decide what happens to such records."};

const ErrorCode kUnreadPicture{
    "HR0347", ErrorKind::kUnsupported, "kind of picture that is not read",
    "The file is sound, and uses a part of its format that is not read here, or whose values 8 "
    "bits a sample would spoil. Convert such files once (Pillow, ImageMagick), or open a Python "
    "object that decodes them."};

const ErrorCode kTooLargePicture{
    "HR0348", ErrorKind::kResource, "picture needs too much memory",
    "Decoding it would take more memory than a picture of its size may need, or the machine has "
    "none left. A valid file does not do the former."};

constexpr const char* kFetchAgain = "fetch the file again, or leave such records out (on_error=)";

}  // namespace

Error corrupt_picture(std::string_view kind, std::string what) {
  return {.code = &kCorruptPicture,
          .what = "no sound " + std::string(kind) + " picture: " + std::move(what),
          .hint = kFetchAgain};
}

Error truncated_picture(std::string_view kind, size_t bytes) {
  Error error{.code = &kTruncatedPicture,
              .what = "the " + std::string(kind) + " picture ends too early",
              .hint = kFetchAgain};
  error.where.offset = static_cast<int64_t>(bytes);
  return error;
}

Error unread_picture(std::string_view kind, std::string what) {
  return {.code = &kUnreadPicture,
          .what = "a " + std::string(kind) + " picture " + std::move(what),
          .hint = "convert such files (Pillow), or open a Python object that decodes them"};
}

Error too_large_picture(std::string_view kind) {
  return {.code = &kTooLargePicture,
          .what = "decoding this " + std::string(kind) + " picture takes too much memory",
          .hint = "leave such records out (on_error=)"};
}

}  // namespace headrace
