// SPDX-License-Identifier: Apache-2.0
// Errors of array files (NumPy, IDX, CIFAR, safetensors), with common wording.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/base/json_reader.h"

namespace headrace {

// HR0424: the file violates its format. `offset`: position in the file, or -1.
Error damaged_array(const std::string& path, std::string what, int64_t offset = -1,
                    std::string hint = "the file was truncated or changed: copy or rewrite it");
// The same for an invalid JSON header; `what` begins with `before`.
Error damaged_array(const JsonReader& header, const std::string& path, std::string_view before);
// HR0425: valid, but not supported; the hint says how to make a supported file.
Error unsupported_array(const std::string& path, std::string what, std::string hint);
// HR0432: a folder of training and test sets, one of which must be chosen.
Error several_parts(const std::string& path, std::string what, std::string hint);

}  // namespace headrace
