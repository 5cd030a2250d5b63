// SPDX-License-Identifier: Apache-2.0
// The .idx file next to a .bin of Megatron-LM: dtype, sequences, and which of them make up each
// document. Parsed as hostile input.
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
  std::vector<int64_t> document_ends;  // in tokens, rising; the last is `tokens`
};

// `bin_bytes`: size of the file of tokens, which the sequences must fill from end to end. Throws
// Exception: HR0424 damaged, HR0425 a version or a dtype that is not read, HR02xx.
MegatronIndex read_megatron_index(const std::string& path, uint64_t bin_bytes);

}  // namespace headrace
