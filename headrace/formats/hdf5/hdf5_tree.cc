// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "headrace/formats/hdf5/hdf5_file.h"

namespace headrace {
namespace {

constexpr int kDeepestV2Tree = 32;
constexpr uint64_t kNodePrefix = 6, kNodeChecksum = 4;  // signature, version, type

// How many records nodes hold, by their height over the leaves.
struct Level {
  uint64_t records = 0;  // maximum per node
  uint64_t below = 0;    // of the node and all nodes below it
  int below_width = 0;   // bytes of the field that stores it
};

class Tree {
 public:
  Tree(const Hdf5File& file, uint64_t address, std::span<const uint8_t> types,
       const std::function<void(uint8_t, std::span<const uint8_t>)>& use)
      : file_(file), use_(use) {
    const uint64_t bytes = 16 + file.address_bytes() + 2 + file.length_bytes() + kNodeChecksum;
    const std::vector<uint8_t> header = file.read_checked(address, bytes, "BTHD", "a B-tree");
    Hdf5Cursor in = file.cursor(std::span(header).subspan(4));
    const uint8_t version = in.u8();
    type_ = in.u8();
    if (version != 0 || std::find(types.begin(), types.end(), type_) == types.end()) {
      file.damaged(address, "a B-tree has an unexpected version or type (version " +
                                std::to_string(version) + ", type " + std::to_string(type_) + ")");
    }
    node_bytes_ = in.u32();
    record_bytes_ = in.u16();
    depth_ = in.u16();
    in.skip(2);  // percentages at which nodes are split and merged
    const uint64_t root = in.address();
    const uint16_t records = in.u16();
    left_ = in.length();
    if (node_bytes_ < 64 || record_bytes_ < 4 || depth_ > kDeepestV2Tree) {
      file.damaged(address, "a B-tree has invalid sizes");
    }
    measure(address);
    if (root != kHdf5Undefined && records > 0) visit(root, records, depth_);
    if (left_ != 0) file.damaged(address, "a B-tree has fewer records than it declares");
  }

 private:
  void measure(uint64_t address) {
    levels_.resize(depth_ + 1);
    const uint64_t room = node_bytes_ - kNodePrefix - kNodeChecksum;
    levels_[0].records = levels_[0].below = room / record_bytes_;
    count_width_ = hdf5_width(levels_[0].records);
    for (size_t level = 1; level < levels_.size(); ++level) {
      const Level& under = levels_[level - 1];
      const uint64_t pointer = pointer_bytes(level);
      if (room <= pointer + record_bytes_)
        file_.damaged(address, "the nodes of a B-tree are too small");
      Level& here = levels_[level];
      here.records = (room - pointer) / (record_bytes_ + pointer);
      uint64_t below = 0;
      if (__builtin_mul_overflow(here.records + 1, under.below, &below) ||
          __builtin_add_overflow(below, here.records, &below)) {
        below = UINT64_MAX;
      }
      here.below = below;
      here.below_width = hdf5_width(below);
    }
  }

  uint64_t pointer_bytes(size_t level) const {
    return file_.address_bytes() + count_width_ + (level > 1 ? levels_[level - 1].below_width : 0);
  }

  void visit(uint64_t address, uint64_t records, size_t level) {
    if (!seen_.insert(address).second) file_.damaged(address, "a B-tree refers to itself");
    if (records > levels_[level].records)
      file_.damaged(address, "a B-tree node has too many records");
    const bool leaf = level == 0;
    const uint64_t pointers = leaf ? 0 : (records + 1) * pointer_bytes(level);
    const uint64_t bytes = kNodePrefix + records * record_bytes_ + pointers + kNodeChecksum;
    const std::vector<uint8_t> node =
        file_.read_checked(address, bytes, leaf ? "BTLF" : "BTIN", "a B-tree node");
    if (node[4] != 0 || node[5] != type_) file_.damaged(address, "a node of another B-tree");
    const std::span<const uint8_t> values = std::span(node).subspan(kNodePrefix);
    Hdf5Cursor in = file_.cursor(values.subspan(records * record_bytes_, pointers));
    for (uint64_t i = 0; i <= records; ++i) {
      if (!leaf) {
        const uint64_t child = in.address();
        const uint64_t count = in.number(count_width_);
        if (level > 1) in.skip(levels_[level - 1].below_width);
        if (child == kHdf5Undefined) file_.damaged(address, "a B-tree node lacks a child");
        visit(child, count, level - 1);
      }
      if (i == records) break;
      if (left_ == 0) file_.damaged(address, "a B-tree has more records than it declares");
      --left_;
      use_(type_, values.subspan(i * record_bytes_, record_bytes_));
    }
  }

  const Hdf5File& file_;
  const std::function<void(uint8_t, std::span<const uint8_t>)>& use_;
  uint8_t type_ = 0;
  uint32_t node_bytes_ = 0;
  uint16_t record_bytes_ = 0, depth_ = 0;
  int count_width_ = 0;
  uint64_t left_ = 0;  // records not read yet
  std::vector<Level> levels_;
  std::unordered_set<uint64_t> seen_;
};

}  // namespace

void visit_hdf5_tree(const Hdf5File& file, uint64_t address, std::span<const uint8_t> types,
                     const std::function<void(uint8_t, std::span<const uint8_t>)>& use) {
  Tree(file, address, types, use);
}

}  // namespace headrace
