// SPDX-License-Identifier: Apache-2.0
// Errors of pictures in formats other than JPEG and PNG, which have their own codes. `kind`: as
// used in a sentence, "WebP".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace {

// HR0345: the library, or its reader, rejected the data.
Error corrupt_picture(std::string_view kind, std::string what);
// HR0346: the bytes are truncated.
Error truncated_picture(std::string_view kind, size_t bytes);
// HR0347: valid, but of an unsupported type.
Error unread_picture(std::string_view kind, std::string what);
// HR0348: the library requested more memory than such a picture may need, or than is available.
Error too_large_picture(std::string_view kind);

}  // namespace headrace
