// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/arrays/array_errors.h"

#include <utility>

namespace headrace {
namespace {

const ErrorCode kDamaged{
    "HR0424", ErrorKind::kData, "damaged array file",
    "The file's signature, header or size is invalid for its format (NumPy, IDX, CIFAR binary, "
    "safetensors, torch.save, token files). Usually it was truncated while being copied or "
    "written. Copy it again, or rewrite it with the library that made it."};

const ErrorCode kUnsupported{
    "HR0425", ErrorKind::kUnsupported, "unsupported array",
    "The file is valid, but its arrays have a type or layout that no field supports: Python "
    "objects (which only pickle can load, and loading a pickle runs code), complex numbers, "
    "dates, nested structures. Convert it once; the message shows how."};

const ErrorCode kSeveralParts{
    "HR0432", ErrorKind::kConfig, "dataset has several parts",
    "The folder contains a training set and a test set (or other splits); opening them together "
    "would train on the test set. Choose one: split=\"train\", or open its file."};

}  // namespace

Error damaged_array(const std::string& path, std::string what, int64_t offset, std::string hint) {
  return {.code = &kDamaged,
          .what = std::move(what),
          .where = Where{.file = path, .offset = offset},
          .hint = std::move(hint)};
}

Error damaged_array(const JsonReader& header, const std::string& path, std::string_view before) {
  const Error error = header.error(kDamaged, path);
  return damaged_array(path, std::string(before) + error.what, error.where.offset);
}

Error unsupported_array(const std::string& path, std::string what, std::string hint) {
  return {.code = &kUnsupported,
          .what = std::move(what),
          .where = Where{.file = path},
          .hint = std::move(hint)};
}

Error several_parts(const std::string& path, std::string what, std::string hint) {
  return {.code = &kSeveralParts,
          .what = std::move(what),
          .where = Where{.file = path},
          .hint = std::move(hint)};
}

}  // namespace headrace
