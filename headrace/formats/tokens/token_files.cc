// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "headrace/base/text.h"
#include "headrace/formats/arrays/array_errors.h"
#include "headrace/formats/tokens/tokens.h"
#include "headrace/sources/columns/array_elements.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/async_storage.h"

namespace headrace {
namespace {

const ErrorCode kOutsideVocabulary{
    "HR1442", ErrorKind::kData, "token id out of range",
    "A token id is negative, at least vocab_size, or does not fit into the delivered dtype. "
    "Usually the file was written with a different dtype or a different tokenizer. Pass the "
    "dtype with which it was written, or the tokenizer's vocab_size."};

std::vector<std::string> paths_of(const std::vector<TokenFile>& files) {
  std::vector<std::string> paths;
  for (const TokenFile& file : files) paths.push_back(file.path);
  return paths;
}

}  // namespace

TokenFiles::TokenFiles(std::vector<TokenFile> files, TokenForm form)
    : files_(std::move(files)), form_(form), set_(paths_of(files_)) {
  for (const TokenFile& file : files_) {
    if (file.dtype == dtype() && file.big_endian == files_.front().big_endian) continue;
    throw Exception(
        damaged_array(file.path,
                      "its tokens are " + std::string(name_of(file.dtype)) + ", but those of " +
                          files_.front().path + " " + std::string(name_of(dtype())),
                      -1, "files opened as one dataset must have tokens of the same dtype"));
  }
  const IntegerRange stored = range_of_integers(dtype()), delivered = range_of_integers(form_.to);
  const int64_t lowest =
      form_.vocab_size ? std::max<int64_t>(0, delivered.lowest) : delivered.lowest;
  const int64_t highest =
      form_.vocab_size ? std::min(form_.vocab_size - 1, delivered.highest) : delivered.highest;
  if (stored.lowest < lowest) lowest_ = lowest;
  if (stored.highest > highest) highest_ = highest;
  if (dtype() == DType::kUInt64) lowest_ = 0;  // see check()
}

int64_t TokenFiles::tokens() const {
  int64_t tokens = 0;
  for (const TokenFile& file : files_) tokens += file.tokens;
  return tokens;
}

// For a file: the first tokens of its records, from the first to the last, and the maximum number
// of adjacent ones.
std::vector<int64_t> TokenFiles::blocks_of(size_t file, int64_t block) const {
  constexpr int64_t kBlocks = 16;
  const int64_t tokens = files_[file].tokens;
  if (tokens == 0) return {};
  const int64_t blocks = std::min(kBlocks, (tokens + block - 1) / block);
  std::vector<int64_t> out;
  for (int64_t b = 0; b < blocks; ++b) {
    out.push_back(blocks == 1 ? 0 : (tokens - block) * b / (blocks - 1));
  }
  return out;
}

// The bytes of all these files together, if they are in one asynchronous storage.
std::vector<AsyncRead> TokenFiles::remote_blocks(size_t begin, size_t end) const {
  std::vector<AsyncRead> reads;
  const Storage& storage = storage_of(set_.path(begin));
  for (size_t i = begin; i < end; ++i) {
    if (!storage.is_async() || &storage_of(set_.path(i)) != &storage) return {};
    const int64_t block = block_tokens(i);
    for (const int64_t token : blocks_of(i, block))
      reads.push_back({.piece = piece(i, token, block)});
  }
  return read_and_wait(storage, std::move(reads));
}

int64_t TokenFiles::block_tokens(size_t file) const {
  constexpr int64_t kBlockBytes = 4096;
  return std::min(kBlockBytes / static_cast<int64_t>(size_of(dtype())), files_[file].tokens);
}

uint64_t TokenFiles::fingerprint() const {
  constexpr size_t kFilesAtOnce = 256;
  std::vector<AsyncRead> far;
  auto arrived = far.begin();
  Fingerprint print;
  print.add("tokens");
  print.add(name_of(dtype()));
  const auto item = static_cast<int64_t>(size_of(dtype()));
  Buffer bytes;
  for (size_t i = 0; i < files_.size(); ++i) {
    const TokenFile& file = files_[i];
    print.add(static_cast<uint64_t>(file.tokens));
    print.add(uint64_t{file.big_endian});
    if (i % kFilesAtOnce == 0) {
      far = remote_blocks(i, std::min(i + kFilesAtOnce, files_.size()));
      arrived = far.begin();
    }
    const int64_t block = block_tokens(i);
    for (const int64_t token : blocks_of(i, block)) {
      bytes.resize(static_cast<size_t>(block * item));
      Result<void> read;
      if (arrived != far.end()) {
        read = std::move(arrived->result);
        bytes = std::move((arrived++)->bytes);
      } else {
        read = set_.read(i, byte_of(i, token), {bytes.data(), bytes.size()});
      }
      if (!read) throw Exception(std::move(read.error()));
      print.add(text_from_bytes(bytes.bytes()));
    }
  }
  return print.value();
}

Result<void> TokenFiles::read(size_t file, int64_t begin, int64_t count, Buffer& scratch,
                              uint8_t* out) const {
  const bool in_place = dtype() == form_.to;
  const size_t bytes = static_cast<size_t>(count) * size_of(dtype());
  if (!in_place) scratch.resize(bytes);
  uint8_t* stored = in_place ? out : scratch.data();
  if (Result<void> read = set_.read(file, byte_of(file, begin), {stored, bytes}); !read) {
    return read;
  }
  make_native({stored, bytes}, dtype(), files_[file].big_endian);
  if (lowest_ || highest_) {
    if (Result<void> checked = check(file, begin, count, stored); !checked) return checked;
  }
  if (!in_place) convert_integers(stored, dtype(), count, form_.to, out);
  return {};
}

Result<void> TokenFiles::check(size_t file, int64_t begin, int64_t count,
                               const uint8_t* stored) const {
  // If uint64 is read as int64, ids that are too large become negative.
  const bool wraps = dtype() == DType::kUInt64;
  const DType compared = wraps ? DType::kInt64 : dtype();
  const IntegerRange found = extremes_of(stored, compared, count);
  const bool low = lowest_ && found.lowest < *lowest_;
  const bool high = highest_ && found.highest > *highest_;
  if (!low && !high) return {};
  const int64_t bad = low ? found.lowest : found.highest;
  const int64_t at = begin + first_equal(stored, compared, count, bad);
  const bool fits = !(wraps && low) && bad >= range_of_integers(form_.to).lowest &&
                    bad <= range_of_integers(form_.to).highest;
  return Error{
      .code = &kOutsideVocabulary,
      .what = "token " + with_commas(at) + " of the file is " +
              (wraps ? std::to_string(static_cast<uint64_t>(bad)) : std::to_string(bad)) + ", " +
              (fits ? "but vocab_size is " + std::to_string(form_.vocab_size)
                    : "which does not fit into " + std::string(name_of(form_.to))),
      .where = Where{.file = set_.shown(file), .offset = static_cast<int64_t>(byte_of(file, at))},
      .hint = "pass the dtype that the file was written with (it is read as " +
              std::string(name_of(dtype())) + ")"};
}

FilePiece TokenFiles::piece(size_t file, int64_t begin, int64_t count) const {
  return set_.piece(file, byte_of(file, begin), static_cast<uint64_t>(count) * size_of(dtype()));
}

}  // namespace headrace
