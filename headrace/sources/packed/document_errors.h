// SPDX-License-Identifier: Apache-2.0
// Errors in documents that are packed. Each error names the document, the field and the location.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/sources/source.h"

namespace headrace {

extern const ErrorCode kOtherLength;  // HR1451

// "document 1,234"
std::string document_text(int64_t document);
// "'tokens' of document 1,234"
std::string value_text(std::string_view field, int64_t document);

Error document_error(const ErrorCode& code, const Source& source, int64_t document,
                     std::string what, std::string hint = {});
// HR1452. `value`: for a uint64 field, its bits.
Error too_wide_token(const Source& source, int64_t document, size_t field, int64_t value,
                     DType delivered);

}  // namespace headrace
