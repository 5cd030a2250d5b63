// SPDX-License-Identifier: Apache-2.0
// One record's use of the records' budget (MemoryGate). If steps render before the end of the
// pipeline, a record reserves memory for everything once, as soon as its header is read; otherwise
// it reserves memory only for writing its output, just before doing so.
#pragma once

#include <cstddef>

#include "headrace/executor/memory/intermediate.h"
#include "headrace/fields/record.h"
#include "headrace/pipeline/plan.h"
#include "headrace/sources/source.h"

namespace headrace {

class RecordBytes {
 public:
  explicit RecordBytes(const Plan& plan);

  bool reserves_early() const { return before_end_.any; }
  // Size of the largest image that steps render, if it is known.
  size_t largest_image() const { return before_end_.largest; }
  // Bytes held from reading its header until it is written: of_one() without its partners,
  // until_written() with them.
  size_t of_one(const Record& record) const;
  size_t until_written(const Record& record) const;

 private:
  const IntermediateMemory before_end_;
  const bool crosses_to_python_;
};

// Memory of values that steps have made for fields other than images.
size_t made_bytes(const Record& record);
// Memory for rendering all its images in their current form, and for the results of steps for its
// other fields.
size_t working_bytes(const Record& record);
// Size of the bytes read, unless they are the source's own memory.
size_t encoded_bytes(const RecordData& data);

}  // namespace headrace
