// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/lmdb/lmdb_pages.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "headrace/base/byte_stream.h"
#include "headrace/sources/readable_text.h"

// After the header of a branch or leaf page: u16 offsets of the nodes, ending at `lower`; the nodes
// begin at `upper`. A node: three u16, u16 key size, key, value. In a leaf the first two u16 are
// the value's size and the third its flags; in a branch all three are the child's page number.

namespace headrace {
namespace {

constexpr uint16_t kBigData = 0x01, kSubData = 0x02, kDupData = 0x04;  // flags of nodes
constexpr uint64_t kWindowBytes = uint64_t{1} << 20;

template <class Number>
Number number_at(std::span<const uint8_t> bytes, size_t at) {
  Number value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string page_text(uint64_t page) { return "page " + std::to_string(page); }

// Checks the header of a tree page: its number, its type, and that its node table is inside. Sets
// the number of nodes.
std::string table_problem(std::span<const uint8_t> page, uint64_t number, uint16_t kind,
                          int& nodes) {
  ByteReader in(page);
  const auto own = in.number<uint64_t>();
  in.number<uint16_t>();
  const auto flags = in.number<uint16_t>(), lower = in.number<uint16_t>(),
             upper = in.number<uint16_t>();
  if (own != number) {
    return page_text(number) + " declares itself " + page_text(own);
  }
  if ((flags & kLmdbKinds) != kind) {
    return page_text(number) + " is " + lmdb_page_kind(flags) + ", not a " +
           (kind == kLmdbLeaf ? "leaf" : "branch");
  }
  if (lower < kLmdbPageHeader || lower > upper || upper > page.size() || lower % 2 != 0) {
    return page_text(number) + " has its free space from " + std::to_string(lower) + " to " +
           std::to_string(upper) + " of " + std::to_string(page.size()) + " bytes";
  }
  nodes = (lower - static_cast<int>(kLmdbPageHeader)) / 2;
  if (nodes == 0) return page_text(number) + " has no entries";
  return {};
}

std::string node_text(int node, uint64_t page) {
  return "entry " + std::to_string(node) + " of page " + std::to_string(page);
}

// Checks that the header and key of a node are inside the page. `at` is set to its offset.
std::string head_problem(std::span<const uint8_t> page, uint64_t number, int node, size_t& at) {
  const auto upper = number_at<uint16_t>(page, 14);
  at = number_at<uint16_t>(page, kLmdbPageHeader + 2 * static_cast<size_t>(node));
  if (at < upper || at > page.size() - LmdbNode::kHeaderBytes) {
    return node_text(node, number) + " should be at " + std::to_string(at) + ", outside " +
           std::to_string(upper) + " to " + std::to_string(page.size());
  }
  const auto key_bytes = number_at<uint16_t>(page, at + 6);
  if (key_bytes > page.size() - at - LmdbNode::kHeaderBytes) {
    return node_text(node, number) + " has a key of " + with_commas(key_bytes) +
           " bytes, which extends beyond the page";
  }
  return {};
}

}  // namespace

LmdbLeaf::LmdbLeaf(std::span<const uint8_t> page, uint64_t number) : page_(page), number_(number) {
  int count = 0;
  problem_ = table_problem(page, number, kLmdbLeaf, count);
  if (!problem_.empty()) return;
  // Overlapping nodes add up to more than the available space, which valid nodes fill exactly.
  uint64_t room = page.size() - number_at<uint16_t>(page, 14);
  for (int i = 0; i < count; ++i) {
    size_t at = 0;
    LmdbNode ignored;
    if (!head_problem(page, number, i, at).empty() || !node(i, ignored).empty()) continue;
    const uint64_t bytes = LmdbNode::kHeaderBytes + ignored.key.size() + ignored.value.size() +
                           (ignored.overflow_page != 0 ? sizeof(uint64_t) : 0);
    if (bytes > room) {
      problem_ = "the entries of page " + std::to_string(number) + " overlap";
      return;
    }
    room -= bytes;
  }
  count_ = count;
}

std::string LmdbLeaf::node(int i, LmdbNode& out) const {
  size_t at = 0;
  std::string problem = head_problem(page_, number_, i, at);
  out = {.key = {}, .value = {}, .offset = number_ * page_.size() + std::min(at, page_.size())};
  if (!problem.empty()) return problem;
  const auto flags = number_at<uint16_t>(page_, at + 4),
             key_bytes = number_at<uint16_t>(page_, at + 6);
  const size_t value_at = at + LmdbNode::kHeaderBytes + key_bytes;
  out.key = page_.subspan(at + LmdbNode::kHeaderBytes, key_bytes);
  out.value_bytes = number_at<uint16_t>(page_, at) |
                    static_cast<uint64_t>(number_at<uint16_t>(page_, at + 2)) << 16;
  if ((flags & kDupData) != 0) return node_text(i, number_) + " has several values";
  if ((flags & ~(kBigData | kSubData)) != 0 || flags == (kBigData | kSubData)) {
    return node_text(i, number_) + " has unknown flags " + std::to_string(flags);
  }
  const bool big = flags == kBigData;
  const uint64_t bytes_here = big ? sizeof(uint64_t) : out.value_bytes;
  if (bytes_here > page_.size() - value_at) {
    return node_text(i, number_) + " has a value of " +
           with_commas(static_cast<int64_t>(out.value_bytes)) +
           " bytes, which extends beyond the page";
  }
  out.database = flags == kSubData;
  if (big) {
    out.overflow_page = number_at<uint64_t>(page_, value_at);
    if (out.overflow_page < 2) {
      return node_text(i, number_) + " has its value in meta " + page_text(out.overflow_page);
    }
  } else {
    out.value = page_.subspan(value_at, out.value_bytes);
  }
  return {};
}

namespace {

// REQUIRES: bytes <= 2^32, page_bytes a page's size.
uint64_t overflow_pages(uint64_t bytes, uint64_t page_bytes) {
  return (kLmdbPageHeader - 1 + bytes) / page_bytes + 1;
}

}  // namespace

std::string overflow_problem(std::span<const uint8_t> bytes, uint64_t page_bytes, uint64_t page) {
  ByteReader in(bytes);
  const auto own = in.number<uint64_t>();
  in.number<uint16_t>();
  const auto flags = in.number<uint16_t>();
  const auto pages = in.number<uint32_t>();
  if (!in.good()) return page_text(page) + " is truncated";
  if (own != page) return page_text(page) + " declares itself " + page_text(own);
  if ((flags & kLmdbKinds) != kLmdbOverflow) {
    return page_text(page) + " is " + lmdb_page_kind(flags) + ", not an overflow page";
  }
  if (pages < overflow_pages(in.left(), page_bytes)) {
    return "a value of " + with_commas(static_cast<int64_t>(in.left())) + " bytes is in " +
           count_text(pages, "page");
  }
  return {};
}

// Claims pages [first, first + pages); false if one of them was claimed before.
bool LmdbWalker::claim(uint64_t first, uint64_t pages) {
  const uint64_t end = first + pages;
  auto next = claimed_.lower_bound(first);
  if (next != claimed_.end() && next->first < end) return false;
  const bool has_last = next != claimed_.begin();
  const auto last = has_last ? std::prev(next) : next;
  if (has_last && last->second > first) return false;
  const bool joins_next = next != claimed_.end() && next->first == end;
  const uint64_t new_end = joins_next ? next->second : end;
  if (joins_next) next = claimed_.erase(next);
  if (has_last && last->second == first) {
    last->second = new_end;
  } else {
    claimed_.emplace_hint(next, first, new_end);
  }
  return true;
}

bool LmdbWalker::is_inside(uint64_t first, uint64_t pages) const {
  return first <= environment_.last_page && pages <= environment_.last_page - first + 1;
}

std::string LmdbWalker::reach(uint64_t page) {
  if (page < 2 || !is_inside(page, 1)) {
    return "there is no " + page_text(page) + " for data: the last one is " +
           std::to_string(environment_.last_page);
  }
  if (page >= file_.size() / environment_.page_bytes) {
    return page_text(page) + " lies after the end of the file, which has " +
           with_commas(static_cast<int64_t>(file_.size())) + " bytes";
  }
  return claim(page, 1) ? "" : page_text(page) + " is reached twice";
}

// Reads ahead for sequential access, more each time.
Result<void> LmdbWalker::read_page(uint64_t page) {
  const uint64_t bytes = environment_.page_bytes;
  if (page < window_first_ || page - window_first_ >= window_pages_) {
    const bool follows = window_pages_ > 0 && page == window_first_ + window_pages_;
    run_ = follows ? std::min(run_ * 4, kWindowBytes / bytes) : 1;
    const uint64_t pages = std::min(run_, file_.size() / bytes - page);
    window_pages_ = 0;
    window_.resize(kWindowBytes);
    if (Result<void> read = file_.read(page * bytes, {window_.data(), pages * bytes}); !read) {
      return read;
    }
    window_first_ = page;
    window_pages_ = pages;
  }
  page_ = {window_.data() + (page - window_first_) * bytes, bytes};
  return {};
}

// The children of the current page.
std::string LmdbWalker::open_branch(uint64_t page, Level& out) const {
  int count = 0;
  std::string problem = table_problem(page_, page, kLmdbBranch, count);
  out = {.page = page, .children = {}};
  for (int i = 0; i < count && problem.empty(); ++i) {
    size_t at = 0;
    problem = head_problem(page_, page, i, at);
    if (!problem.empty()) break;
    out.children.push_back(number_at<uint32_t>(page_, at) |
                           static_cast<uint64_t>(number_at<uint16_t>(page_, at + 4)) << 32);
  }
  return problem;
}

std::string LmdbWalker::claim_value(const LmdbNode& node) {
  const uint64_t page = node.overflow_page, bytes = environment_.page_bytes;
  const uint64_t pages = overflow_pages(node.value_bytes, bytes);
  const std::string value = "a value of " + with_commas(static_cast<int64_t>(node.value_bytes)) +
                            " bytes in " + page_text(page);
  if (!is_inside(page, pages)) {
    return value + " extends beyond the last page " + std::to_string(environment_.last_page);
  }
  if (page * bytes + kLmdbPageHeader + node.value_bytes > file_.size()) {
    return value + " extends beyond the end of the file, which has " +
           with_commas(static_cast<int64_t>(file_.size())) + " bytes";
  }
  return claim(page, pages) ? "" : value + " overlaps another page of the environment";
}

void LmdbWalker::visit_leaf(uint64_t page, LmdbVisitor& visitor) {
  const LmdbLeaf leaf(page_, page);
  visitor.leaf(page);
  if (!leaf.problem().empty()) {
    report_bad(page * environment_.page_bytes, leaf.problem(), visitor);
    return;
  }
  for (int i = 0; i < leaf.count(); ++i) {
    LmdbNode node;
    std::string problem = leaf.node(i, node);
    if (problem.empty() && node.overflow_page != 0) problem = claim_value(node);
    if (problem.empty()) {
      visitor.node(node);
    } else {
      report_bad(node.offset, problem, visitor);
    }
  }
}

// Limits the list of errors: a hostile file can refer to far more pages than it has bytes.
void LmdbWalker::report_bad(uint64_t offset, const std::string& what, LmdbVisitor& visitor) {
  if (++bad_ < kMaxBad) {
    visitor.bad(offset, what);
  } else if (bad_ == kMaxBad) {
    visitor.bad(offset, "the " + with_commas(kMaxBad) + "th damaged place; the rest is not read (" +
                            what + ")");
  }
}

Result<void> LmdbWalker::walk(const LmdbTree& tree, LmdbVisitor& visitor) {
  if (tree.root == LmdbTree::kNoPage) return {};
  std::vector<Level> path = {{.page = 0, .children = {tree.root}}};
  while (!path.empty() && bad_ < kMaxBad) {
    Level& level = path.back();
    if (level.next == level.children.size()) {
      path.pop_back();
      continue;
    }
    const uint64_t page = level.children[level.next++];
    std::string problem = reach(page);
    if (problem.empty()) {
      if (Result<void> read = read_page(page); !read) return read;
      if (path.size() == static_cast<size_t>(tree.depth)) {
        visit_leaf(page, visitor);
        continue;
      }
      Level below;
      problem = open_branch(page, below);
      if (problem.empty()) path.push_back(std::move(below));
    }
    const uint64_t bytes = environment_.page_bytes;
    if (!problem.empty()) {
      report_bad(std::min(page, file_.size() / bytes) * bytes, problem, visitor);
    }
  }
  return {};
}

}  // namespace headrace
