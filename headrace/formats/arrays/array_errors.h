// SPDX-License-Identifier: Apache-2.0
// Errors of files of arrays (NumPy, IDX, CIFAR, safetensors), in the same words.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/base/json_reader.h"

namespace headrace {

// HR0424: the file is not what its format says. `offset`: where in the file, or -1.
Error damaged_array(const std::string& path, std::string what, int64_t offset = -1,
                    std::string hint = "the file was truncated or changed: copy or write it again");
// The same for a header in JSON that could not be read; `what` begins with `before`.
Error damaged_array(const JsonReader& header, const std::string& path, std::string_view before);
// HR0425: sound, but of a kind that is not read; the hint says how to make one that is.
Error unsupported_array(const std::string& path, std::string what, std::string hint);
// HR0432: a folder of training and test sets, of which one has to be named.
Error several_parts(const std::string& path, std::string what, std::string hint);

}  // namespace headrace
