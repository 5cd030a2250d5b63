// SPDX-License-Identifier: Apache-2.0
// Which kind of token file a path is, and what its header says: raw integers (nanoGPT's train.bin),
// llm.c's .bin, Megatron's .bin with its .idx, a one-dimensional .npy.
#pragma once

#include <optional>
#include <string>

#include "headrace/formats/tokens/token_files.h"

namespace headrace {

// Whether its first bytes say that it is one, so that nobody has to: llm.c's and Megatron's.
bool is_token_file(const std::string& path);

// `dtype`: as the user gave it; none: the header's, of raw files uint16. Throws Exception: HR0424,
// HR0425, HR1440 where a raw file does not look like its dtype, HR1441 where a header says another,
// HR02xx.
TokenFile open_token_file(const std::string& path, std::optional<DType> dtype);

}  // namespace headrace
