// SPDX-License-Identifier: Apache-2.0
// Datasets of token ids: recognizes and opens files of contiguous integers of one type, and
// provides the two sources that read ranges of tokens, windows and documents.
//
// Files are read (pread), never mapped: a file that is truncated while it is open must cause an
// error of a record, not a signal (SIGBUS). Const members may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/base/tensor.h"
#include "headrace/sources/source.h"
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

// --- Opening files (open_token_file.cc, megatron_index.cc) ---
// The kinds of token files: raw integers (nanoGPT's train.bin), llm.c's .bin, Megatron's .bin with
// its .idx, or a one-dimensional .npy.

// Whether a file is recognizable as a token file, without format=: those of llm.c and Megatron are.
bool is_token_file(const std::string& path);

// `dtype`: as given by the user; empty: from the header, or uint16 for raw files. Throws Exception:
// HR0424, HR0425, HR1440 if a raw file does not look like uint16, HR1441 if the header has a
// different dtype, HR02xx.
TokenFile open_token_file(const std::string& path, std::optional<DType> dtype);

inline constexpr std::string_view kMegatronMagic{"MMIDIDX\0\0", 9};

// The .idx file next to a .bin of Megatron-LM: the dtype, the sequences, and which sequences make
// up each document. Parsed as hostile input.
struct MegatronIndex {
  DType dtype = DType::kInt32;
  int64_t tokens = 0;
  std::vector<int64_t> document_ends;  // in tokens, ascending; the last is `tokens`
};

// `bin_bytes`: the size of the .bin, which the sequences must cover exactly. Throws Exception:
// HR0424 damaged, HR0425 an unsupported version or dtype, HR02xx.
MegatronIndex read_megatron_index(const std::string& path, uint64_t bin_bytes);

// --- Documents (token_documents.cc): a record is one document, of any length ---

// Throws Exception HR1446.
[[noreturn]] void refuse_eos_of_windows(int64_t end_token);

// Fills in document_ends for files that lack it: each document ends with this token, and tokens
// after the last one are a document, too. Reads all files once. Throws Exception: HR1446 for a
// token that the dtype of a file cannot represent, HR02xx, what `progress` throws.
void find_documents(std::vector<TokenFile>& files, int64_t end_token, const Progress& progress);

// REQUIRES: every file with tokens has document_ends. Empty documents are left out, and counted.
// Throws Exception HR1444 if no document remains.
SourcePtr token_documents(std::shared_ptr<const TokenFiles> files, std::string title);

// --- Windows (token_windows.cc): a record has a fixed number of tokens, and as targets the tokens
// shifted by one ---

// What to do with the tokens after the last whole window of a file.
enum class LastWindow : uint8_t {
  kDrop,     // leave them out, and count them
  kPad,      // add a window, padded to the full length
  kOverlap,  // add a window that begins earlier, so that it ends with the file
};

struct WindowOptions {
  int64_t window = 1024;  // tokens per record
  int64_t stride = 1024;  // distance between the starts of consecutive windows
  int shift = 1;          // distance from a token to its target, 1 or 0; -1: no targets
  LastWindow last = LastWindow::kDrop;
  int64_t pad = 0;              // the token id in padding
  int64_t ignore_index = -100;  // the target in padding
};

// Windows never cross file boundaries. Throws Exception HR1443 if there is no window, or the dtype
// cannot hold `pad` or `ignore_index`. `title`: "tokens train.bin".
SourcePtr token_windows(std::shared_ptr<const TokenFiles> files, const WindowOptions& options,
                        std::string title);

}  // namespace headrace
