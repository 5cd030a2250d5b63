// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/batch/batch.h"

#include "headrace/base/error.h"

namespace headrace {
namespace {

const ErrorCode kNoSuchField{
    "HR0740", ErrorKind::kConfig, "field not in the batch",
    "A batch has the fields that the loader delivers; fields= selects them."};

}  // namespace

const BatchField& Batch::operator[](std::string_view name) const {
  for (const BatchField& field : fields) {
    if (field.name == name) return field;
  }
  raise(kNoSuchField, "the batch has no field \"" + std::string(name) + "\"");
}

}  // namespace headrace
