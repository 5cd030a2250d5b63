// SPDX-License-Identifier: Apache-2.0
// Reads the .idx file next to a .bin of Megatron-LM: the dtype, the sequences, and which sequences
// make up each document. Parsed as hostile input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/tensor.h"

namespace headrace {

inline constexpr std::string_view kMegatronMagic{"MMIDIDX\0\0", 9};

struct MegatronIndex {
  DType dtype = DType::kInt32;
  int64_t tokens = 0;
  std::vector<int64_t> document_ends;  // in tokens, ascending; the last is `tokens`
};

// `bin_bytes`: the size of the .bin, which the sequences must cover exactly. Throws Exception:
// HR0424 damaged, HR0425 an unsupported version or dtype, HR02xx.
MegatronIndex read_megatron_index(const std::string& path, uint64_t bin_bytes);

}  // namespace headrace
