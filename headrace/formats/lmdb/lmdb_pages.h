// SPDX-License-Identifier: Apache-2.0
// Reads the pages of an LMDB environment (data.mdb) without liblmdb, which trusts the file that it
// maps.
//
// Nothing in the file is trusted: every page is checked before it is used, no page is visited
// twice, and bad pages are reported to the visitor while the walk continues. lock.mdb is neither
// read nor created, so the environment must not be written to while it is open.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/formats/lmdb/lmdb_environment.h"
#include "headrace/storage/file.h"

namespace headrace {

// One entry of a leaf page. Spans point into the page.
struct LmdbNode {
  static constexpr size_t kHeaderBytes = 8;
  std::span<const uint8_t> key;
  std::span<const uint8_t> value;  // the bytes in the leaf
  uint64_t value_bytes = 0;
  uint64_t overflow_page = 0;  // first overflow page of the value, which follows its header; or 0
  bool database = false;       // the value is a named database
  uint64_t offset = 0;         // offset of the node in the file
};

// A leaf page. Does not own the bytes.
class LmdbLeaf {
 public:
  LmdbLeaf(std::span<const uint8_t> page, uint64_t number);
  // The error in the page as text; the page then has no nodes.
  const std::string& problem() const { return problem_; }
  int count() const { return count_; }
  // Reads node `i` to `out`, or returns the error in it. REQUIRES: 0 <= i < count().
  std::string node(int i, LmdbNode& out) const;

 private:
  std::span<const uint8_t> page_;
  uint64_t number_ = 0;
  std::string problem_;
  int count_ = 0;
};

// Checks that `bytes`, starting at an overflow page, are the value that a leaf refers to; otherwise
// returns the error.
std::string overflow_problem(std::span<const uint8_t> bytes, uint64_t page_bytes, uint64_t page);

class LmdbVisitor {
 public:
  virtual ~LmdbVisitor() = default;
  virtual void leaf(uint64_t page) { (void)page; }  // called before its nodes
  virtual void node(const LmdbNode& node) = 0;
  // Called instead of node(), for a bad node, or for a bad page with everything below it.
  virtual void bad(uint64_t offset, const std::string& what) = 0;
};

class LmdbWalker {
 public:
  // Both arguments must outlive the walker.
  LmdbWalker(const File& file, const LmdbEnvironment& environment)
      : file_(file), environment_(environment) {}

  static constexpr int64_t kMaxBad = 100'000;

  // Visits all entries in key order; gives up after kMaxBad errors. Returns a storage error if
  // bytes cannot be read.
  Result<void> walk(const LmdbTree& tree, LmdbVisitor& visitor);

 private:
  // Children of one branch page that have not been visited yet.
  struct Level {
    uint64_t page = 0;
    std::vector<uint64_t> children;
    size_t next = 0;
  };

  bool claim(uint64_t first, uint64_t pages);
  bool is_inside(uint64_t first, uint64_t pages) const;
  std::string reach(uint64_t page);
  Result<void> read_page(uint64_t page);
  std::string open_branch(uint64_t page, Level& out) const;
  std::string claim_value(const LmdbNode& node);
  void visit_leaf(uint64_t page, LmdbVisitor& visitor);
  void report_bad(uint64_t offset, const std::string& what, LmdbVisitor& visitor);

  const File& file_;
  const LmdbEnvironment& environment_;
  std::map<uint64_t, uint64_t> claimed_;  // ranges of claimed pages: first -> end
  int64_t bad_ = 0;                       // errors so far
  // Pages that were read together; `page_` is the current one.
  Buffer window_;
  uint64_t window_first_ = 0, window_pages_ = 0, run_ = 1;
  std::span<const uint8_t> page_;
};

}  // namespace headrace
