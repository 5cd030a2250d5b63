// SPDX-License-Identifier: Apache-2.0
// Errors of pictures of any kind but JPEG and PNG, which have codes of their own.
// `kind`: as a sentence has it, "WebP".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace {

// HR0345: what its library, or its reader, could not make sense of.
Error corrupt_picture(std::string_view kind, std::string what);
// HR0346: the bytes end before what was asked for.
Error truncated_picture(std::string_view kind, size_t bytes);
// HR0347: sound, and of a sort that is not read.
Error unread_picture(std::string_view kind, std::string what);
// HR0348: its library asked for more memory than such a picture may need, or than there is.
Error too_large_picture(std::string_view kind);

}  // namespace headrace
