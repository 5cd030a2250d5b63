// SPDX-License-Identifier: Apache-2.0
// Reads and checks the meta pages of an LMDB environment (data.mdb).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "headrace/base/error.h"
#include "headrace/storage/file.h"

namespace headrace {

// A B+ tree: the environment's main database, or a named one.
struct LmdbTree {
  static constexpr uint64_t kNoPage = UINT64_MAX;
  static constexpr size_t kStoredBytes = 48;
  enum Flag : uint16_t { kReverseKey = 0x02, kDupSort = 0x04, kIntegerKey = 0x08 };

  uint64_t root = kNoPage;  // page number of the root; kNoPage: empty
  uint64_t entries = 0;
  int depth = 0;  // levels of pages
  uint16_t flags = 0;
};

struct LmdbEnvironment {
  uint64_t page_bytes = 0;  // a power of two
  uint64_t last_page = 0;
  uint64_t transaction = 0;
  LmdbTree main;
  bool recovered = false;  // one of the meta pages is damaged
};

// The newer of the two meta pages. HR0480 for unsupported environments, HR0481 if one of the meta
// pages is damaged; with `recover`, only if both are.
Result<LmdbEnvironment> read_lmdb_environment(const File& file, bool recover = false);

// Whether the first 32 bytes of a file may belong to an environment, written on any kind of
// machine.
bool begins_like_lmdb(std::span<const uint8_t> first_bytes);

// The tree in a named database's entry.
Result<LmdbTree> lmdb_tree_from(std::span<const uint8_t> value, const LmdbEnvironment& environment,
                                const File& file, uint64_t offset);

// HR0480, for valid but unsupported environments.
Error lmdb_not_supported(const File& file, std::string what, std::string hint);

// The header of every page:
//   u64  page number       u16  unused        u16  flags
//   u16  lower, u16 upper: the free space; or u32 pages, of an overflow page
constexpr uint64_t kLmdbPageHeader = 16;
constexpr int kLmdbDeepest = 32;  // levels of pages, LMDB's own limit
enum LmdbPageFlag : uint16_t {
  kLmdbBranch = 0x01,
  kLmdbLeaf = 0x02,
  kLmdbOverflow = 0x04,
  kLmdbMeta = 0x08,
  kLmdbLeaf2 = 0x20,
  kLmdbSubPage = 0x40,
  kLmdbKinds = 0x6F,
};
std::string lmdb_page_kind(uint16_t flags);  // "a leaf page"

}  // namespace headrace
