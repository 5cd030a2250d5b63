// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "headrace/formats/arrays/array_errors.h"
#include "headrace/formats/tokens/tokens.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

// Magic, version (uint64), dtype (uint8), numbers of sequences and of document ends (uint64).
constexpr size_t kHeaderBytes = 9 + 8 + 1 + 8 + 8;
constexpr size_t kVersionAt = 9, kDtypeAt = 17, kSequencesAt = 18, kDocumentsAt = 26;
constexpr int64_t kAtOnce = int64_t{1} << 16;  // entries that are read together

// Codes 6 and 7 are floats.
std::optional<DType> integer_of(uint8_t code) {
  switch (code) {
    case 1:
      return DType::kUInt8;
    case 2:
      return DType::kInt8;
    case 3:
      return DType::kInt16;
    case 4:
      return DType::kInt32;
    case 5:
      return DType::kInt64;
    case 8:
      return DType::kUInt16;
    default:
      return {};
  }
}

template <class T>
T little(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Numbers of one table, a block of them at a time.
template <class T>
class Table {
 public:
  Table(const File& file, uint64_t offset, int64_t count)
      : file_(file), offset_(offset), count_(count) {}

  // REQUIRES: i is not less than in the previous call.
  T operator()(int64_t i) {
    if (i >= end_) {
      begin_ = i;
      end_ = std::min(count_, i + kAtOnce);
      block_.resize(static_cast<size_t>(end_ - begin_) * sizeof(T));
      const uint64_t at = offset_ + static_cast<uint64_t>(begin_) * sizeof(T);
      if (Result<void> read = file_.read(at, std::span(block_)); !read) {
        throw Exception(std::move(read.error()));
      }
    }
    return little<T>(block_.data() + static_cast<size_t>(i - begin_) * sizeof(T));
  }

 private:
  const File& file_;
  uint64_t offset_;
  int64_t count_, begin_ = 0, end_ = 0;
  std::vector<uint8_t> block_;
};

struct Layout {
  DType dtype = DType::kInt32;
  int64_t sequences = 0, documents = 0;
  uint64_t lengths = 0, pointers = 0, ends = 0;  // offsets of the tables
};

Layout read_layout(const File& file) {
  const std::string& path = file.path();
  std::array<uint8_t, kHeaderBytes> header{};
  if (file.size() < header.size()) {
    throw Exception(damaged_array(path, "it has " + std::to_string(file.size()) +
                                            " bytes, but the header alone has " +
                                            std::to_string(header.size())));
  }
  if (Result<void> read = file.read(0, std::span(header)); !read) {
    throw Exception(std::move(read.error()));
  }
  if (std::memcmp(header.data(), kMegatronMagic.data(), kMegatronMagic.size()) != 0) {
    throw Exception(damaged_array(path, "it does not begin with Megatron's MMIDIDX", 0,
                                  "the older \"cached\" and \"lazy\" indexes are not supported: "
                                  "preprocess the data with mmap, the default"));
  }
  if (const auto version = little<uint64_t>(header.data() + kVersionAt); version != 1) {
    throw Exception(unsupported_array(path, "its version is " + std::to_string(version),
                                      "only version 1 is supported"));
  }
  const std::optional<DType> dtype = integer_of(header[kDtypeAt]);
  if (!dtype) {
    throw Exception(unsupported_array(
        path,
        "its dtype code is " + std::to_string(header[kDtypeAt]) + ", which is not an integer type",
        "token ids must be integers: codes 1 to 5 and 8"));
  }
  const auto sequences = little<uint64_t>(header.data() + kSequencesAt);
  const auto documents = little<uint64_t>(header.data() + kDocumentsAt);
  const uint64_t left = file.size() - kHeaderBytes;
  // Checked in this order, nothing overflows. An optional table of modes has a byte per sequence.
  const bool fits = sequences <= left / 12 && documents <= (left - sequences * 12) / 8;
  const uint64_t rest = fits ? left - sequences * 12 - documents * 8 : 0;
  if (!fits || (rest != 0 && rest != sequences)) {
    throw Exception(damaged_array(path,
                                  "its header declares " + std::to_string(sequences) +
                                      " sequences and " + std::to_string(documents) +
                                      " document ends, which does not match the " +
                                      std::to_string(left) + " bytes after it",
                                  kSequencesAt));
  }
  if (documents == 0) {
    throw Exception(damaged_array(path, "it has no table of documents", kDocumentsAt));
  }
  return {.dtype = *dtype,
          .sequences = static_cast<int64_t>(sequences),
          .documents = static_cast<int64_t>(documents) - 1,
          .lengths = kHeaderBytes,
          .pointers = kHeaderBytes + sequences * 4,
          .ends = kHeaderBytes + sequences * 12};
}

Error bad_sequence(const File& file, const Layout& layout, int64_t sequence, std::string what,
                   bool of_length) {
  const uint64_t at = of_length ? layout.lengths + static_cast<uint64_t>(sequence) * 4
                                : layout.pointers + static_cast<uint64_t>(sequence) * 8;
  return damaged_array(file.path(), "sequence " + with_commas(sequence) + " " + std::move(what),
                       static_cast<int64_t>(at));
}

}  // namespace

MegatronIndex read_megatron_index(const std::string& path, uint64_t bin_bytes) {
  const Result<File> opened = File::open(path);
  if (!opened) throw Exception(opened.error());
  const File& file = *opened;
  const Layout layout = read_layout(file);
  const auto item = static_cast<int64_t>(size_of(layout.dtype));
  const auto all = static_cast<int64_t>(bin_bytes);
  Table<int32_t> lengths(file, layout.lengths, layout.sequences);
  Table<int64_t> pointers(file, layout.pointers, layout.sequences);
  Table<int64_t> ends(file, layout.ends, layout.documents + 1);
  MegatronIndex out;
  out.dtype = layout.dtype;
  out.document_ends.reserve(static_cast<size_t>(layout.documents));
  if (const int64_t first = ends(0); first != 0) {
    throw Exception(damaged_array(
        path, "the first document begins at sequence " + std::to_string(first) + ", not 0",
        static_cast<int64_t>(layout.ends)));
  }
  int64_t sequence = 0;
  for (int64_t document = 0; document < layout.documents; ++document) {
    const int64_t end = ends(document + 1);
    if (end < sequence || end > layout.sequences) {
      throw Exception(damaged_array(
          path,
          "document " + with_commas(document) + " ends at sequence " + std::to_string(end) +
              ", but starts at " + std::to_string(sequence) + " of " +
              std::to_string(layout.sequences),
          static_cast<int64_t>(layout.ends + static_cast<uint64_t>(document + 1) * 8)));
    }
    for (; sequence < end; ++sequence) {
      const int64_t length = lengths(sequence), pointer = pointers(sequence);
      if (length < 0) {
        throw Exception(bad_sequence(file, layout, sequence,
                                     "has " + std::to_string(length) + " tokens", true));
      }
      if (pointer != out.tokens * item) {
        throw Exception(bad_sequence(file, layout, sequence,
                                     "is at byte " + std::to_string(pointer) +
                                         ", but the previous ones end at " +
                                         std::to_string(out.tokens * item),
                                     false));
      }
      if (length > (all - pointer) / item) {
        throw Exception(bad_sequence(file, layout, sequence,
                                     "has " + std::to_string(length) + " tokens at byte " +
                                         std::to_string(pointer) + ", but the .bin has " +
                                         std::to_string(all) + " bytes",
                                     true));
      }
      out.tokens += length;
    }
    out.document_ends.push_back(out.tokens);
  }
  if (sequence != layout.sequences || out.tokens * item != all) {
    throw Exception(damaged_array(
        path,
        "its documents have " + with_commas(sequence) + " of " + with_commas(layout.sequences) +
            " sequences and end at byte " + std::to_string(out.tokens * item) +
            " of the .bin, which has " + std::to_string(all),
        -1, "the .bin and the .idx come from different runs, or one is incomplete: rewrite them"));
  }
  return out;
}

}  // namespace headrace
