// SPDX-License-Identifier: Apache-2.0
// The pickle inside a file of torch.save, read for the tensors that it describes. Nothing in it is
// ever called: the few names that torch.save writes mean tensors, storages and dictionaries here,
// and any other name, or an opcode that torch.save does not write, is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/dtype.h"
#include "headrace/base/error.h"

namespace headrace {

// A tensor, in elements of a storage. Nothing of it is checked against the storage.
struct TorchTensor {
  std::string name;     // its key; of a single tensor empty, of a tuple its number
  std::string storage;  // a member's name below data/
  DType dtype = DType::kUInt8;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
};

struct TorchContents {
  std::vector<TorchTensor> tensors;
  std::vector<std::string> others;  // names of what is no tensor
};

// HR0424 for what is no such pickle, HR0425 for what is not read, HR1404 for one that would call
// anything else; `path` is for these.
Result<TorchContents> read_torch_pickle(std::span<const uint8_t> bytes, const std::string& path);

}  // namespace headrace
