// SPDX-License-Identifier: Apache-2.0
// A numeric array that is read record by record from one or more files, or from memory if it had to
// be decompressed.
//
// Files are read (pread), never mapped: a file that is truncated while it is open must cause an
// error of a record, not a signal (SIGBUS). Const members may be called from any thread.
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

// Consecutive records in one file, or in memory.
struct FilePart {
  std::shared_ptr<const File> file;  // shared: by the columns stored in it
  uint64_t offset = 0;               // of the first record
  int64_t count = 0;
  std::shared_ptr<const Buffer> memory = {};  // instead of the file; shared likewise

  uint64_t size() const { return memory ? memory->size() : file->size(); }
  Result<void> read(uint64_t at, std::span<uint8_t> out) const;
};

struct FileArray {
  std::vector<FilePart> parts;  // in order
  DType dtype = DType::kUInt8;
  Shape shape = {};     // per record, as delivered
  uint64_t stride = 0;  // bytes from one record to the next; 0: dense
  bool big_endian = false;
  bool channels_last = false;  // stored as (H, W, C), delivered as (C, H, W)

  int64_t count() const;
  // The error in the layout (sizes that overflow, records that overlap or extend beyond the end of
  // their file), or empty. REQUIRES: called before any of the following.
  std::string problem() const;

  size_t record_bytes() const { return static_cast<size_t>(element_count(shape)) * size_of(dtype); }
  // The whole array, if it is in memory in the delivered form; else null.
  const uint8_t* in_place() const;
  // Reads a record, dense and in native byte order. `scratch` is used if channels are transposed.
  Result<void> read(int64_t record, Buffer& out, Buffer& scratch) const;
  // Reads all records. REQUIRES: out.size() == count() * record_bytes().
  Result<void> load(std::span<uint8_t> out) const;
  // Adds the file range of the record, if it is in an asynchronous storage.
  void add_piece(int64_t record, std::vector<FilePiece>& out) const;
  bool is_async() const;
  // Reads the first bytes of a record as stored, for fingerprints.
  Result<void> peek(int64_t record, std::span<uint8_t> out) const;

 private:
  const FilePart& part_of(int64_t& record) const;
  uint64_t step() const { return stride ? stride : record_bytes(); }
};

}  // namespace headrace
