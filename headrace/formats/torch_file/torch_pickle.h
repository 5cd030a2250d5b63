// SPDX-License-Identifier: Apache-2.0
// Parses the pickle inside a torch.save file for the tensors that it describes. Nothing named in
// the pickle is called. Only the few names that torch.save writes, for tensors, storages and
// dictionaries, are recognized; any other name, and any opcode that torch.save does not write, is
// an error.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/dtype.h"
#include "headrace/base/error.h"

namespace headrace {

// A tensor, in elements of a storage. Not yet checked against the storage.
struct TorchTensor {
  std::string name;     // its key; empty for a single tensor, the index for a tuple
  std::string storage;  // a member's name below data/
  DType dtype = DType::kUInt8;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
};

struct TorchContents {
  std::vector<TorchTensor> tensors;
  std::vector<std::string> others;  // names of values that are not tensors
};

// HR0424 for an invalid pickle, HR0425 for an unsupported one, HR1404 for one that would call
// anything else; `path` is for messages.
Result<TorchContents> read_torch_pickle(std::span<const uint8_t> bytes, const std::string& path);

}  // namespace headrace
