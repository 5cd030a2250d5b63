// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "headrace/base/text.h"
#include "headrace/formats/tokens/tokens.h"
#include "headrace/sources/columns/array_elements.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/sources/value_parts.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kNoDocuments{
    "HR1444", ErrorKind::kConfig, "token file without documents",
    "All documents are empty: the files are empty, or their index contains only empty documents."};

const ErrorCode kBadEos{
    "HR1446", ErrorKind::kConfig, "invalid eos=",
    "eos= is the id of the token that ends each document, for window=None (one record per "
    "document). It must fit into the dtype of the file. Windows of a fixed length ignore where "
    "documents end, so omit eos= for them."};

class TokenDocuments final : public Source, public ValueParts {
 public:
  TokenDocuments(std::shared_ptr<const TokenFiles> files, std::string title)
      : files_(std::move(files)),
        title_(std::move(title)),
        schema_{
            {.name = "tokens", .kind = FieldKind::kTensor, .dtype = files_->to(), .shape = {-1}}} {
    Fingerprint print;
    print.add("documents");
    print.add(files_->fingerprint());
    print.add(name_of(files_->to()));
    for (size_t file = 0; file < files_->size(); ++file) {
      int64_t begin = 0;
      for (const int64_t end : (*files_)[file].document_ends) {
        print.add(static_cast<uint64_t>(end));
        if (end == begin) ++empty_;
        if (end > begin) begins_.push_back(begin);
        begin = end;
      }
      file_ends_.push_back(size());
    }
    fingerprint_ = print.value();
  }

  std::vector<std::string> cautions() const override {
    int64_t files = 0;
    std::string first;
    for (size_t i = 0; i < files_->size(); ++i) {
      if (!(*files_)[i].lacks_eos) continue;
      if (files++ == 0) first = (*files_)[i].path;
    }
    if (files == 0) return {};
    return {count_text(files, "file") +
            " of tokens without eos, each treated as one document; the first is " + first};
  }

  int64_t size() const override { return static_cast<int64_t>(begins_.size()); }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override {
    return files_->is_async() ? ReadStyle::kLater : ReadStyle::kFiles;
  }
  uint64_t fingerprint() const override { return fingerprint_; }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      begin_record(indices[i], 1, 2, out[i]);
      if (!wanted[0]) continue;
      const int64_t length = length_of(indices[i]);
      Buffer& values = out[i].owned[0];
      values.resize(static_cast<size_t>(length) * files_->item_bytes());
      Result<void> read = read_part(indices[i], 0, 0, length, out[i].owned[1], values.data());
      if (read) {
        out[i].fields[0].bytes = values.bytes();
        out[i].fields[0].shape = {length};
      } else {
        out[i].result = std::move(read);
      }
    }
  }
  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const override {
    if (wanted[0]) part_pieces(index, 0, 0, length_of(index), out);
  }

  std::vector<int64_t> value_lengths(size_t) const override {
    std::vector<int64_t> lengths(begins_.size());
    for (int64_t i = 0; i < size(); ++i) lengths[static_cast<size_t>(i)] = length_of(i);
    return lengths;
  }
  Result<void> read_part(int64_t index, size_t, int64_t begin, int64_t count, Buffer& scratch,
                         uint8_t* out) const override {
    Result<void> read = files_->read(file_of(index), begin_of(index) + begin, count, scratch, out);
    if (!read) read.error().where.record = index;
    return read;
  }
  void part_pieces(int64_t index, size_t, int64_t begin, int64_t count,
                   std::vector<FilePiece>& out) const override {
    if (!files_->is_async()) return;
    out.push_back(files_->piece(file_of(index), begin_of(index) + begin, count));
  }

  std::string key(int64_t index) const override {
    const size_t file = file_of(index);
    const std::string& path = (*files_)[file].path;
    const int64_t number = file == 0 ? index : index - file_ends_[file - 1];
    return std::string(last_name(without_query(path))) + "/" + std::to_string(number);
  }
  Where where(int64_t index) const override {
    const size_t file = file_of(index);
    return {.file = (*files_)[file].path,
            .record = index,
            .offset = static_cast<int64_t>(files_->byte_of(file, begin_of(index)))};
  }

  std::string description() const override {
    std::string out = title_ + " (" + count_text(size(), "document") + " of " +
                      with_commas(files_->tokens()) + " " + std::string(name_of(files_->dtype())) +
                      " tokens";
    if (empty_ > 0) out += ", " + count_text(empty_, "empty document") + " skipped";
    return out + ")";
  }

 private:
  size_t file_of(int64_t index) const {
    return static_cast<size_t>(std::ranges::upper_bound(file_ends_, index) - file_ends_.begin());
  }
  int64_t begin_of(int64_t index) const { return begins_[static_cast<size_t>(index)]; }
  // Empty documents are not listed, so each document ends where the next one of its file begins.
  int64_t length_of(int64_t index) const {
    const size_t file = file_of(index);
    const bool last = index + 1 == file_ends_[file];
    return (last ? (*files_)[file].tokens : begin_of(index + 1)) - begin_of(index);
  }

  std::shared_ptr<const TokenFiles> files_;  // shared: as it was made
  const std::string title_;
  const Schema schema_;
  std::vector<int64_t> begins_;     // tokens in the file before each document
  std::vector<int64_t> file_ends_;  // by file: the index after its last document
  int64_t empty_ = 0;
  uint64_t fingerprint_ = 0;
};

}  // namespace

void refuse_eos_of_windows(int64_t end_token) {
  raise(kBadEos, "eos=" + std::to_string(end_token) + " and window= are both given",
        "use window=None for one record per document, or omit eos= for windows");
}

void find_documents(std::vector<TokenFile>& files, int64_t end_token, const Progress& progress) {
  constexpr int64_t kAtOnce = int64_t{1} << 20;
  int64_t done = 0, total = 0;
  for (const TokenFile& file : files) total += file.tokens;
  for (const TokenFile& file : files) {
    const IntegerRange range = range_of_integers(file.dtype);
    if (end_token >= range.lowest && end_token <= range.highest) continue;
    raise(kBadEos,
          "eos=" + std::to_string(end_token) + " does not fit into " +
              std::string(name_of(file.dtype)) + ", the dtype of the tokens of " + file.path,
          "pass the tokenizer's id of the token; or pass dtype=, if the file has no header");
  }
  const TokenFiles reader(files, {});
  Buffer scratch, block;
  for (size_t i = 0; i < files.size(); ++i) {
    TokenFile& file = files[i];
    const bool wanted = file.document_ends.empty();
    for (int64_t begin = 0; wanted && begin < file.tokens; begin += kAtOnce) {
      if (progress) progress(done + begin, total);
      const int64_t count = std::min(kAtOnce, file.tokens - begin);
      block.resize(static_cast<size_t>(count) * sizeof(int64_t));
      if (Result<void> read = reader.read(i, begin, count, scratch, block.data()); !read) {
        throw Exception(std::move(read.error()));
      }
      const auto* tokens = reinterpret_cast<const int64_t*>(block.data());
      for (int64_t t = 0; t < count; ++t) {
        if (tokens[t] == end_token) file.document_ends.push_back(begin + t + 1);
      }
    }
    file.lacks_eos = wanted && file.tokens > 0 && file.document_ends.empty();
    if (wanted && file.tokens > 0 &&
        (file.document_ends.empty() || file.document_ends.back() != file.tokens)) {
      file.document_ends.push_back(file.tokens);
    }
    done += file.tokens;
  }
}

SourcePtr token_documents(std::shared_ptr<const TokenFiles> files, std::string title) {
  const std::string first = (*files)[0].path;
  auto documents = std::make_shared<TokenDocuments>(std::move(files), std::move(title));
  if (documents->size() == 0) raise(kNoDocuments, "no document of " + first + " has a token");
  return documents;
}

}  // namespace headrace
