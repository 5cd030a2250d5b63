// SPDX-License-Identifier: Apache-2.0
// Detects the kind of a token file and parses its header: raw integers (nanoGPT's train.bin),
// llm.c's .bin, Megatron's .bin with its .idx, or a one-dimensional .npy.
#pragma once

#include <optional>
#include <string>

#include "headrace/formats/tokens/token_files.h"

namespace headrace {

// Whether a file is recognizable as a token file, without format=: those of llm.c and Megatron are.
bool is_token_file(const std::string& path);

// `dtype`: as given by the user; empty: from the header, or uint16 for raw files. Throws Exception:
// HR0424, HR0425, HR1440 if a raw file does not look like uint16, HR1441 if the header has a
// different dtype, HR02xx.
TokenFile open_token_file(const std::string& path, std::optional<DType> dtype);

}  // namespace headrace
