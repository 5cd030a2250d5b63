// SPDX-License-Identifier: Apache-2.0
// What can be wrong with a file of arrays (NumPy, IDX, CIFAR, safetensors), in the same words.
#pragma once

#include <string>

#include "headrace/base/error.h"

namespace headrace {

// HR0424: the file is not what its format says. `offset`: where in the file, or -1.
Error damaged_array(const std::string& path, std::string what, int64_t offset = -1,
                    std::string hint = "the file was cut off or changed: copy or write it again");
// HR0425: sound, but of a kind that is not read; the hint says how to make one that is.
Error unsupported_array(const std::string& path, std::string what, std::string hint);
// HR0432: a folder of training and test sets, of which one has to be named.
Error several_parts(const std::string& path, std::string what, std::string hint);

}  // namespace headrace
