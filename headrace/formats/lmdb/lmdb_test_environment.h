// SPDX-License-Identifier: Apache-2.0
// For tests: writes LMDB environments, page by page, in the layout of LMDB 0.9 on 64-bit machines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace headrace {

class LmdbTestEnvironment {
 public:
  using Entries = std::vector<std::pair<std::string, std::string>>;  // sorted by key
  static constexpr uint64_t kNoPage = UINT64_MAX;
  struct Tree {
    uint64_t root = kNoPage, entries = 0;
    uint16_t depth = 0, flags = 0;
  };

  explicit LmdbTestEnvironment(uint32_t page_bytes = 512)
      : page_bytes_(page_bytes), bytes_(2 * page_bytes, '\0') {}

  // Fills leaves completely, then the branches above them. A value too large to leave room for a
  // second one in its page gets overflow pages.
  Tree add_tree(const Entries& entries, uint16_t flags = 0) {
    std::vector<std::pair<std::string, uint64_t>> level;
    for (const auto& [key, value] : entries) {
      const bool big = 8 + key.size() + value.size() > (page_bytes_ - 16) / 2 - 2;
      const uint64_t overflow = big ? add_overflow(value) : 0;
      std::string stored = value;
      if (big) stored.assign(reinterpret_cast<const char*>(&overflow), 8);
      put_node(level, 0x02, key, node(value.size(), big ? 0x01 : 0, key, stored));
    }
    return finish(std::move(level), entries.size(), flags);
  }
  // A main database whose entries are databases.
  Tree add_databases(const std::vector<std::pair<std::string, Tree>>& trees) {
    std::vector<std::pair<std::string, uint64_t>> level;
    for (const auto& [name, tree] : trees) {
      const std::string stored = tree_bytes(tree, 0);
      put_node(level, 0x02, name, node(stored.size(), 0x02, name, stored));
    }
    return finish(std::move(level), trees.size(), 0);
  }
  // The whole file; meta page number `transaction` % 2 is the newer one.
  std::string file(const Tree& main, uint64_t transaction = 1) {
    write_meta(transaction % 2, main, transaction);
    write_meta(1 - transaction % 2, Tree(), transaction - 1);
    return bytes_;
  }

  uint32_t page_bytes() const { return page_bytes_; }

 private:
  template <class Number>
  static void put(std::string& out, size_t at, Number value) {
    std::memcpy(out.data() + at, &value, sizeof value);
  }
  std::string tree_bytes(const Tree& tree, uint32_t first) const {
    std::string out(48, '\0');
    put(out, 0, first);
    put(out, 4, tree.flags);
    put(out, 6, tree.depth);
    put(out, 32, tree.entries);
    put(out, 40, tree.root);
    return out;
  }
  void write_meta(uint64_t number, const Tree& main, uint64_t transaction) {
    std::string meta(152, '\0');
    put(meta, 0, number);
    put(meta, 10, uint16_t{0x08});
    put(meta, 16, uint32_t{0xBEEFC0DE});
    put(meta, 20, uint32_t{1});
    put(meta, 32, uint64_t{1} << 20);
    meta.replace(40, 48, tree_bytes(Tree(), page_bytes_));
    meta.replace(88, 48, tree_bytes(main, 0));
    put(meta, 136, bytes_.size() / page_bytes_ - 1);
    put(meta, 144, transaction);
    bytes_.replace(number * page_bytes_, meta.size(), meta);
  }
  static std::string node(uint64_t size, uint16_t flags, const std::string& key,
                          const std::string& stored) {
    std::string out(8, '\0');
    put(out, 0, static_cast<uint16_t>(size));
    put(out, 2, static_cast<uint16_t>(size >> 16));
    put(out, 4, flags);
    put(out, 6, static_cast<uint16_t>(key.size()));
    return out + key + stored;
  }
  uint64_t new_page(uint16_t flags) {
    const uint64_t number = bytes_.size() / page_bytes_;
    std::string page(page_bytes_, '\0');
    put(page, 0, number);
    put(page, 10, flags);
    put(page, 12, uint16_t{16});
    put(page, 14, static_cast<uint16_t>(page_bytes_));
    bytes_ += page;
    return number;
  }
  uint64_t add_overflow(const std::string& value) {
    const uint64_t pages = (15 + value.size()) / page_bytes_ + 1;
    const uint64_t number = new_page(0x04);
    put(bytes_, number * page_bytes_ + 12, static_cast<uint32_t>(pages));
    bytes_.resize((number + pages) * page_bytes_, '\0');
    bytes_.replace(number * page_bytes_ + 16, value.size(), value);
    return number;
  }
  // Appends to the last page of the level, or to a new one.
  void put_node(std::vector<std::pair<std::string, uint64_t>>& level, uint16_t flags,
                const std::string& key, std::string stored) {
    if (stored.size() % 2 != 0) stored += '\0';
    uint16_t lower = 0, upper = 0;
    const auto free_space = [&] {
      std::memcpy(&lower, bytes_.data() + level.back().second * page_bytes_ + 12, 2);
      std::memcpy(&upper, bytes_.data() + level.back().second * page_bytes_ + 14, 2);
      return static_cast<size_t>(upper - lower);
    };
    if (level.empty() || free_space() < stored.size() + 2) level.emplace_back(key, new_page(flags));
    free_space();
    const size_t page = level.back().second * page_bytes_;
    upper = static_cast<uint16_t>(upper - stored.size());
    bytes_.replace(page + upper, stored.size(), stored);
    put(bytes_, page + lower, upper);
    put(bytes_, page + 12, static_cast<uint16_t>(lower + 2));
    put(bytes_, page + 14, upper);
  }
  Tree finish(std::vector<std::pair<std::string, uint64_t>> level, uint64_t entries,
              uint16_t flags) {
    if (level.empty()) return {.flags = flags};
    uint16_t depth = 1;
    for (; level.size() > 1; ++depth) {
      std::vector<std::pair<std::string, uint64_t>> above;
      for (const auto& [key, page] : level) {
        const std::string name = &page == &level[0].second ? "" : key;
        put_node(above, 0x01, key,
                 node(page & 0xFFFFFFFF, static_cast<uint16_t>(page >> 32), name, ""));
      }
      level = std::move(above);
    }
    return {.root = level[0].second, .entries = entries, .depth = depth, .flags = flags};
  }

  uint32_t page_bytes_;
  std::string bytes_;
};

// Protobuf messages for tests.
inline std::string proto_varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  return out + static_cast<char>(value);
}
inline std::string proto_number(int field, uint64_t value) {
  return proto_varint(static_cast<uint64_t>(field) << 3) + proto_varint(value);
}
inline std::string proto_bytes(int field, const std::string& bytes) {
  return proto_varint(static_cast<uint64_t>(field) << 3 | 2) + proto_varint(bytes.size()) + bytes;
}

}  // namespace headrace
