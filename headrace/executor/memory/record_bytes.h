// SPDX-License-Identifier: Apache-2.0
// One record's use of the records' share (MemoryGate). Where steps render before the end of
// the pipeline, a record asks once, as soon as its header is read, for all until it is written;
// else for what writing it takes, just before.
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

  bool asks_early() const { return before_end_.any; }
  // Size of the largest image that steps render, where it is known.
  size_t largest_image() const { return before_end_.largest; }
  // From its header to its end; without its partners, and with those that it has.
  size_t of_one(const Record& record) const;
  size_t until_written(const Record& record) const;

 private:
  const IntermediateMemory before_end_;
  const bool crosses_to_python_;
};

// Memory of values that steps have made for fields that are not images.
size_t made_bytes(const Record& record);
// For rendering all its images, as they are now, and what steps have made of its other fields.
size_t working_bytes(const Record& record);
// Size of the bytes that were read, unless they are the source's own memory.
size_t encoded_bytes(const RecordData& data);

}  // namespace headrace
