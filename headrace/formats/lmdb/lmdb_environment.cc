// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/lmdb/lmdb_environment.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "headrace/base/byte_stream.h"
#include "headrace/sources/readable_text.h"

// A meta page, after the page header; all numbers are little-endian:
//   u32  signature   u32  version   u64, u64  map address, map size
//   the tree of free pages, whose first number is the page size; the main tree
//   u64  the last page   u64  transaction
// A tree:
//   u32  unused   u16  flags   u16  depth   3 x u64  pages of each type   u64  entries   u64  root

namespace headrace {
namespace {

const ErrorCode kNotSupported{
    "HR0480", ErrorKind::kUnsupported, "unsupported LMDB environment",
    "Environments written by LMDB 0.9 on a 64-bit little-endian machine (file version 1), with one "
    "value per key, are supported. Copy other environments (from 32-bit or big-endian machines, "
    "LMDB 1.0, databases with dupsort) with `mdb_dump` and `mdb_load`, or with a short Python loop "
    "over the lmdb package."};

const ErrorCode kBadEnvironment{
    "HR0481", ErrorKind::kData, "damaged LMDB environment",
    "The file does not begin with two valid meta pages, as every LMDB environment does. It is "
    "another file, truncated, or damaged; copy it again. If only one of the two pages is damaged, "
    "recover=True opens the environment with the other one, which may lack the last transaction."};

constexpr uint32_t kMagic = 0xBEEFC0DE;
constexpr uint32_t kVersion = 1;
constexpr size_t kMetaBytes = kLmdbPageHeader + 24 + 2 * LmdbTree::kStoredBytes + 16;
constexpr uint64_t kSmallestPage = 512, kLargestPage = 32768;
constexpr uint64_t kMaxPages = uint64_t{1} << 44;

uint32_t number_at(std::span<const uint8_t> bytes, size_t at) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

LmdbTree tree_at(ByteReader& in) {
  LmdbTree tree;
  in.number<uint32_t>();
  tree.flags = in.number<uint16_t>();
  tree.depth = in.number<uint16_t>();
  in.bytes(24);  // number of pages of each kind
  tree.entries = in.number<uint64_t>();
  tree.root = in.number<uint64_t>();
  return tree;
}

std::string tree_problem(const LmdbTree& tree, uint64_t last_page) {
  if (tree.root == LmdbTree::kNoPage) {
    return tree.entries == 0 ? ""
                             : "a database without pages has " +
                                   with_commas(static_cast<int64_t>(tree.entries)) + " entries";
  }
  if (tree.root < 2 || tree.root > last_page) {
    return "the root of a database is page " + std::to_string(tree.root) + ", outside 2 to " +
           std::to_string(last_page);
  }
  if (tree.depth < 1 || tree.depth > kLmdbDeepest) {
    return "a database is " + std::to_string(tree.depth) + " pages deep, not 1 to " +
           std::to_string(kLmdbDeepest);
  }
  return {};
}

// The error in meta page `number` at `offset`, or fills in the environment.
std::string meta_problem(std::span<const uint8_t> bytes, uint64_t number, uint64_t offset,
                         LmdbEnvironment& out) {
  ByteReader in(bytes);
  const auto own = in.number<uint64_t>();
  in.number<uint16_t>();
  const auto flags = in.number<uint16_t>();
  in.number<uint32_t>();
  const auto magic = in.number<uint32_t>(), version = in.number<uint32_t>();
  in.bytes(16);  // map address and map size
  ByteReader free_list = in;
  out.page_bytes = free_list.number<uint32_t>();  // others store a key size here
  in.bytes(LmdbTree::kStoredBytes);
  out.main = tree_at(in);
  out.last_page = in.number<uint64_t>();
  out.transaction = in.number<uint64_t>();
  const std::string name = "meta page " + std::to_string(number);
  if (!in.good()) return name + " is truncated";
  if (magic != kMagic) return name + " has no LMDB signature";
  if (own != number || (flags & kLmdbKinds) != kLmdbMeta)
    return name + " is " + lmdb_page_kind(flags);
  if (version != kVersion) return name + " is of version " + std::to_string(version);
  if (out.page_bytes < kSmallestPage || out.page_bytes > kLargestPage ||
      !std::has_single_bit(out.page_bytes)) {
    return name + " declares pages of " + with_commas(static_cast<int64_t>(out.page_bytes)) +
           " bytes";
  }
  if (offset != number * out.page_bytes) return name + " has a different page size";
  if (out.last_page < 1 || out.last_page > kMaxPages) {
    return name + " says that the last page is " + std::to_string(out.last_page);
  }
  const std::string tree = tree_problem(out.main, out.last_page);
  return tree.empty() ? "" : name + ": " + tree;
}

// Detects valid but unsupported environments.
std::string other_kind(std::span<const uint8_t> begin) {
  const auto at = [&](size_t place) { return number_at(begin, place); };
  if (at(16) == __builtin_bswap32(kMagic) || at(12) == __builtin_bswap32(kMagic)) {
    return "the environment was written by a big-endian machine";
  }
  if (at(12) == kMagic) return "the environment was written by a 32-bit machine";
  if (at(16) == kMagic && (at(20) == 2 || at(20) == 999)) {
    return "the environment is of file version " + std::to_string(at(20)) +
           " (LMDB 1.0 or a development version)";
  }
  return {};
}

Error bad_environment(const File& file, uint64_t offset, std::string what, std::string hint = {}) {
  return {.code = &kBadEnvironment,
          .what = std::move(what),
          .where = Where{.file = file.path(), .offset = static_cast<int64_t>(offset)},
          .hint = std::move(hint)};
}

struct MetaPage {
  LmdbEnvironment environment;
  std::string problem;
};

Result<MetaPage> read_meta(const File& file, uint64_t number, uint64_t offset) {
  std::array<uint8_t, kMetaBytes> bytes{};
  const uint64_t there = offset < file.size() ? file.size() - offset : 0;
  const std::span<uint8_t> part(bytes.data(), std::min<uint64_t>(bytes.size(), there));
  if (!part.empty()) {
    if (Result<void> read = file.read(offset, part); !read) return read.error();
  }
  MetaPage out;
  out.problem = meta_problem(part, number, offset, out.environment);
  return out;
}

// Finds the second meta page if the first one does not give the page size.
Result<MetaPage> find_second_meta(const File& file) {
  MetaPage found;
  for (uint64_t bytes = kSmallestPage; bytes <= kLargestPage; bytes *= 2) {
    Result<MetaPage> second = read_meta(file, 1, bytes);
    if (!second || second->problem.empty()) return second;
    if (bytes == 4096) found = *second;
  }
  return found;
}

}  // namespace

bool begins_like_lmdb(std::span<const uint8_t> first_bytes) {
  if (first_bytes.size() < 24) return false;
  for (const size_t place : {size_t{12}, size_t{16}}) {
    const auto magic = number_at(first_bytes, place);
    if (magic == kMagic || magic == __builtin_bswap32(kMagic)) return true;
  }
  return false;
}

Result<LmdbEnvironment> read_lmdb_environment(const File& file, bool recover) {
  std::array<uint8_t, 24> begin{};
  if (file.size() < begin.size()) {
    return bad_environment(file, 0,
                           "the file has " + with_commas(static_cast<int64_t>(file.size())) +
                               " bytes, fewer than a meta page");
  }
  if (Result<void> read = file.read(0, begin); !read) return read.error();
  if (const std::string kind = other_kind(begin); !kind.empty()) {
    return lmdb_not_supported(file, kind, "copy it with mdb_dump there and mdb_load here");
  }
  const Result<MetaPage> first = read_meta(file, 0, 0);
  if (!first) return first.error();
  const Result<MetaPage> second = first->problem.empty()
                                      ? read_meta(file, 1, first->environment.page_bytes)
                                      : find_second_meta(file);
  if (!second) return second.error();
  const bool first_good = first->problem.empty(), second_good = second->problem.empty();
  if (!first_good && !second_good) return bad_environment(file, 0, first->problem);
  if (!recover && first_good != second_good) {
    const LmdbEnvironment& good = first_good ? first->environment : second->environment;
    return bad_environment(file, first_good ? good.page_bytes : 0,
                           first_good ? second->problem : first->problem,
                           "copy the file again, or open it as of transaction " +
                               std::to_string(good.transaction) + " with recover=True");
  }
  const bool use_second = second_good && (!first_good || second->environment.transaction >
                                                             first->environment.transaction);
  LmdbEnvironment newest = use_second ? second->environment : first->environment;
  newest.recovered = first_good != second_good;
  return newest;
}

Result<LmdbTree> lmdb_tree_from(std::span<const uint8_t> value, const LmdbEnvironment& environment,
                                const File& file, uint64_t offset) {
  std::string problem = "the entry of a named database has " +
                        with_commas(static_cast<int64_t>(value.size())) + " bytes, not 48";
  if (value.size() == LmdbTree::kStoredBytes) {
    ByteReader in(value);
    const LmdbTree tree = tree_at(in);
    problem = tree_problem(tree, environment.last_page);
    if (problem.empty()) return tree;
  }
  return bad_environment(file, offset, std::move(problem));
}

Error lmdb_not_supported(const File& file, std::string what, std::string hint) {
  return {.code = &kNotSupported,
          .what = std::move(what),
          .where = Where{.file = file.path()},
          .hint = std::move(hint)};
}

std::string lmdb_page_kind(uint16_t flags) {
  switch (flags & kLmdbKinds) {
    case kLmdbBranch:
      return "a branch page";
    case kLmdbLeaf:
      return "a leaf page";
    case kLmdbOverflow:
      return "an overflow page";
    case kLmdbMeta:
      return "a meta page";
    case kLmdbLeaf | kLmdbLeaf2:
      return "a page of fixed-size duplicates";
    default:
      return "not a page (flags " + std::to_string(flags) + ")";
  }
}

}  // namespace headrace
