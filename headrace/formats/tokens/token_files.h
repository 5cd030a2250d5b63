// SPDX-License-Identifier: Apache-2.0
// Files of token ids: contiguous integers of one type, of which ranges are read.
//
// Files are read (pread), never mapped: a file that is truncated while it is open must cause an
// error of a record, not a signal (SIGBUS). Const members may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/base/tensor.h"
#include "headrace/storage/file_set.h"

namespace headrace {

// One file, as described by its header or its size.
struct TokenFile {
  std::string path;  // of the file with the tokens
  DType dtype = DType::kUInt16;
  bool big_endian = false;
  uint64_t offset = 0;  // of the first token, in bytes
  int64_t tokens = 0;
  // The end of each document, in tokens, ascending; the last is `tokens`. Empty if unknown.
  std::vector<int64_t> document_ends = {};
  bool lacks_eos = false;  // it does not contain the end-of-document token
};

// How tokens are delivered.
struct TokenForm {
  DType to = DType::kInt64;
  int64_t vocab_size = 0;  // ids must be below it; 0: not checked
};

class TokenFiles {
 public:
  // Throws Exception: HR0424 if the types of the files differ, HR02xx.
  TokenFiles(std::vector<TokenFile> files, TokenForm form);

  size_t size() const { return files_.size(); }
  const TokenFile& operator[](size_t file) const { return files_[file]; }
  DType dtype() const { return files_.front().dtype; }
  DType to() const { return form_.to; }
  size_t item_bytes() const { return size_of(form_.to); }
  int64_t tokens() const;
  bool is_async() const { return set_.is_async(); }
  // Covers the sizes of the files and some of their tokens: for files up to 64 KiB, all of them.
  uint64_t fingerprint() const;

  // Reads tokens [begin, begin + count) of a file, in the delivered type. `scratch`: buffer for the
  // stored bytes. REQUIRES: the range is within the file. HR02xx, HR1442.
  Result<void> read(size_t file, int64_t begin, int64_t count, Buffer& scratch, uint8_t* out) const;
  FilePiece piece(size_t file, int64_t begin, int64_t count) const;
  uint64_t byte_of(size_t file, int64_t token) const {
    return files_[file].offset + static_cast<uint64_t>(token) * size_of(dtype());
  }

 private:
  // The parts of a file that are included in the fingerprint.
  int64_t block_tokens(size_t file) const;
  std::vector<int64_t> blocks_of(size_t file, int64_t block) const;
  std::vector<AsyncRead> remote_blocks(size_t begin, size_t end) const;
  Result<void> check(size_t file, int64_t begin, int64_t count, const uint8_t* stored) const;

  std::vector<TokenFile> files_;
  TokenForm form_;
  FileSet set_;
  // The valid range of ids; empty: no limit.
  std::optional<int64_t> lowest_, highest_;
};

}  // namespace headrace
