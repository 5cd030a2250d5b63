// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/packed/document_errors.h"

#include <utility>

#include "headrace/sources/readable_text.h"

namespace headrace {

const ErrorCode kOtherLength{
    "HR1451", ErrorKind::kData, "document changed since packing",
    "Rows are planned once, from the lengths of the documents, when the source is created. A "
    "document with another length has changed since, or differs each time it is read; or a field "
    "of token_fields= does not have one value per token."};

namespace {

const ErrorCode kTooWideToken{
    "HR1452", ErrorKind::kData, "token does not fit into the delivered dtype",
    "A token or label of a document is outside the range of the packed rows' dtype. Pass a wider "
    "dtype: to=\"int64\"."};

}  // namespace

std::string document_text(int64_t document) { return "document " + with_commas(document); }

std::string value_text(std::string_view field, int64_t document) {
  return "'" + std::string(field) + "' of " + document_text(document);
}

Error document_error(const ErrorCode& code, const Source& source, int64_t document,
                     std::string what, std::string hint) {
  Where where = source.where(document);
  where.record = document;
  return {
      .code = &code, .what = std::move(what), .where = std::move(where), .hint = std::move(hint)};
}

Error too_wide_token(const Source& source, int64_t document, size_t field, int64_t value,
                     DType delivered) {
  const Field& of = source.schema()[field];
  const bool wraps = of.dtype == DType::kUInt64;
  return document_error(
      kTooWideToken, source, document,
      value_text(of.name, document) + " has " +
          (wraps ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value)) +
          ", which does not fit into " + std::string(name_of(delivered)),
      delivered == DType::kInt64 ? "check the program that wrote it: no vocabulary is that large"
                                 : "to=\"int64\"");
}

}  // namespace headrace
