// SPDX-License-Identifier: Apache-2.0
// An array of numbers in one or more files, read record by record; or in memory, if it had to be
// decompressed.
//
// Files are read by position, never mapped: a file that is truncated while it is open must cause
// an error of a record and not a signal. Const members may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/base/tensor.h"
#include "headrace/storage/file.h"

namespace headrace {

// Records that follow each other in one file, or in memory.
struct FilePart {
  std::shared_ptr<const File> file;  // shared: by the columns that lie in it
  uint64_t offset = 0;               // of its first record
  int64_t count = 0;
  std::shared_ptr<const Buffer> memory = {};  // instead of the file; shared likewise

  uint64_t size() const { return memory ? memory->size() : file->size(); }
  Result<void> read(uint64_t at, std::span<uint8_t> out) const;
};

struct FileArray {
  std::vector<FilePart> parts;  // one after the other
  DType dtype = DType::kUInt8;
  Shape shape = {};     // of one record, as it is delivered
  uint64_t stride = 0;  // bytes from one record to the next; 0: they are dense
  bool big_endian = false;
  bool channels_last = false;  // stored as (H, W, C), delivered as (C, H, W)

  int64_t count() const;
  // The error in the layout (sizes that overflow, records that overlap or end after their file), or
  // nothing. REQUIRED before any of the following.
  std::string problem() const;

  size_t record_bytes() const { return static_cast<size_t>(element_count(shape)) * size_of(dtype); }
  // The whole array, if it is in memory in the delivered form; else null.
  const uint8_t* in_place() const;
  // One dense record in native byte order. `scratch` is used if the channels have to move.
  Result<void> read(int64_t record, Buffer& out, Buffer& scratch) const;
  // All records, one after the other. REQUIRES: out.size() == count() * record_bytes().
  Result<void> load(std::span<uint8_t> out) const;
  // Where the record lies, if that is in an asynchronous storage.
  void add_piece(int64_t record, std::vector<FilePiece>& out) const;
  bool answers_later() const;
  // The first bytes of a record as they are stored, to tell arrays apart.
  Result<void> peek(int64_t record, std::span<uint8_t> out) const;

 private:
  const FilePart& part_of(int64_t& record) const;
  uint64_t step() const { return stride ? stride : record_bytes(); }
};

}  // namespace headrace
