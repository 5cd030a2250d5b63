// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/hdf5/hdf5_chunks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <unordered_set>

#include "headrace/formats/hdf5/hdf5_file.h"

namespace headrace {
namespace {

constexpr int kDeepestTree = 32;

struct Found {
  uint64_t cell;
  Hdf5Chunk chunk;
};

uint64_t divided_up(uint64_t size, uint64_t by) { return size / by + (size % by != 0); }

// Reads any type of index into a list of chunks.
class IndexReader {
 public:
  IndexReader(const Hdf5File& file, const Hdf5Layout& layout, const Hdf5Space& space,
              const std::vector<uint64_t>& grid, uint64_t chunk_bytes, bool filtered)
      : file_(file),
        layout_(layout),
        space_(space),
        grid_(grid),
        chunk_bytes_(chunk_bytes),
        filtered_(filtered) {}

  std::vector<Found> read() {
    switch (layout_.index) {
      case Hdf5Index::kOldTree:
        visit_old_tree(layout_.address, -1);
        break;
      case Hdf5Index::kSingle:
        read_single();
        break;
      case Hdf5Index::kFixedArray:
      case Hdf5Index::kExtensible:
        read_array();
        break;
      case Hdf5Index::kTree:
        read_tree();
        break;
      case Hdf5Index::kImplicit:
        break;
    }
    std::sort(found_.begin(), found_.end(),
              [](const Found& a, const Found& b) { return a.cell < b.cell; });
    for (size_t i = 1; i < found_.size(); ++i) {
      if (found_[i].cell == found_[i - 1].cell) bad("has a chunk twice");
    }
    return std::move(found_);
  }

 private:
  [[noreturn]] void bad(const std::string& how) const {
    file_.damaged(layout_.address, "an index of chunks that " + how);
  }

  // Chunks outside of the dataset are ignored: it may have shrunk.
  void add(std::span<const uint64_t> scaled, uint64_t address, uint64_t bytes, uint32_t mask) {
    uint64_t cell = 0;
    for (size_t i = 0; i < grid_.size(); ++i) {
      if (scaled[i] >= grid_[i]) return;
      cell = cell * grid_[i] + scaled[i];
    }
    if (!filtered_) bytes = chunk_bytes_, mask = 0;
    if (bytes == 0 || bytes > UINT32_MAX || !file_.holds(address, bytes)) {
      file_.damaged(address, "a chunk of " + std::to_string(bytes) +
                                 " bytes is not inside the file of " +
                                 std::to_string(file_.file().size()) + " bytes");
    }
    stored_ += bytes;
    if (stored_ > file_.file().size())
      bad("refers to more bytes than the file has: chunks overlap");
    found_.push_back({cell, {address, static_cast<uint32_t>(bytes), mask}});
  }

  void visit_old_tree(uint64_t address, int level) {
    if (!seen_.insert(address).second) bad("refers to itself");
    const uint64_t head = 8 + 2 * file_.address_bytes();
    const std::vector<uint8_t> begin = file_.read(address, head, "an index of chunks");
    Hdf5Cursor in = file_.cursor(begin);
    const std::span<const uint8_t> signature = in.bytes(4);
    const uint8_t type = in.u8(), found_level = in.u8();
    const uint16_t count = in.u16();
    if (std::memcmp(signature.data(), "TREE", 4) != 0 || type != 1 || found_level > kDeepestTree ||
        (level >= 0 && found_level != level)) {
      file_.damaged(address, "an index of chunks that is not a B-tree of chunks");
    }
    const uint64_t key = 8 + 8 * (grid_.size() + 1);
    const std::vector<uint8_t> body = file_.read(
        address + head, count * (key + file_.address_bytes()) + key, "an index of chunks");
    Hdf5Cursor entries = file_.cursor(body);
    std::vector<uint64_t> scaled(grid_.size());
    for (int i = 0; i < count; ++i) {
      const uint32_t bytes = entries.u32(), mask = entries.u32();
      bool fits = true;
      for (size_t j = 0; j < scaled.size(); ++j) {
        const uint64_t offset = entries.number(8);
        fits = fits && offset % layout_.chunk[j] == 0;
        scaled[j] = offset / layout_.chunk[j];
      }
      entries.skip(8);
      const uint64_t child = entries.address();
      if (child == kHdf5Undefined) file_.damaged(address, "an index of chunks without a part");
      if (found_level > 0) {
        visit_old_tree(child, found_level - 1);
        continue;
      }
      if (!fits) file_.damaged(address, "a chunk that does not begin where chunks do");
      if (!filtered_ && bytes != chunk_bytes_) {
        file_.damaged(address, "a chunk of " + std::to_string(bytes) + " bytes instead of " +
                                   std::to_string(chunk_bytes_));
      }
      add(scaled, child, bytes, mask);
    }
  }

  void read_single() {
    if (std::any_of(grid_.begin(), grid_.end(), [](uint64_t n) { return n > 1; })) {
      bad("has a single chunk, but several are needed");
    }
    filtered_ = filtered_ && layout_.single_bytes > 0;
    add(std::vector<uint64_t>(grid_.size(), 0), layout_.address, layout_.single_bytes,
        layout_.single_mask);
  }

  // Elements are numbered along the largest grid that the dataset may grow to, with its unlimited
  // dimension first.
  void read_array() {
    std::vector<size_t> order;
    for (size_t i = 0; i < grid_.size(); ++i) {
      if (space_.most[i] != UINT64_MAX) {
        order.push_back(i);
      } else if (layout_.index == Hdf5Index::kFixedArray || endless_) {
        bad("cannot index a dataset that grows in this way");
      } else {
        order.insert(order.begin(), i);
        endless_ = true;
      }
    }
    if (layout_.index == Hdf5Index::kExtensible && !endless_)
      bad("can grow, but its dataset cannot");
    std::vector<uint64_t> sizes;
    uint64_t limit = 1;
    for (size_t i : order) {
      const bool grows = space_.most[i] == UINT64_MAX;
      sizes.push_back(grows ? grid_[i] : divided_up(space_.most[i], layout_.chunk[i]));
      if (__builtin_mul_overflow(limit, sizes.back(), &limit)) bad("has too many chunks");
    }
    std::vector<uint64_t> scaled(grid_.size());
    const Hdf5ElementUse use = [&](uint64_t number, uint64_t address, uint64_t bytes,
                                   uint32_t mask) {
      for (size_t i = order.size(); i-- > 0; number /= sizes[i]) {
        scaled[order[i]] = number % sizes[i];
      }
      add(scaled, address, bytes, mask);
    };
    if (layout_.index == Hdf5Index::kFixedArray) {
      visit_hdf5_fixed_array(file_, layout_.address, filtered_, limit, use);
    } else {
      visit_hdf5_extensible_array(file_, layout_.address, filtered_, limit, use);
    }
  }

  void read_tree() {
    const std::array<uint8_t, 1> type = {static_cast<uint8_t>(filtered_ ? 11 : 10)};
    std::vector<uint64_t> scaled(grid_.size());
    visit_hdf5_tree(file_, layout_.address, type, [&](uint8_t, std::span<const uint8_t> record) {
      const size_t plain = file_.address_bytes() + 8 * grid_.size();
      Hdf5Cursor in = file_.cursor(record);
      const uint64_t address = in.address();
      uint64_t bytes = 0;
      uint32_t mask = 0;
      if (filtered_) {
        if (record.size() <= plain + 4 || record.size() > plain + 12) bad("has wrong records");
        bytes = in.number(static_cast<int>(record.size() - plain - 4));
        mask = in.u32();
      } else if (record.size() != plain) {
        bad("has wrong records");
      }
      for (uint64_t& index : scaled) index = in.number(8);
      if (address != kHdf5Undefined) add(scaled, address, bytes, mask);
    });
  }

  const Hdf5File& file_;
  const Hdf5Layout& layout_;
  const Hdf5Space& space_;
  const std::vector<uint64_t>& grid_;
  uint64_t chunk_bytes_;
  bool filtered_, endless_ = false;
  uint64_t stored_ = 0;
  std::vector<Found> found_;
  std::unordered_set<uint64_t> seen_;
};

}  // namespace

Hdf5ChunkIndex::Hdf5ChunkIndex(const Hdf5File& file, const Hdf5Layout& layout,
                               const Hdf5Space& space, uint64_t chunk_bytes, bool filtered)
    : chunk_bytes_(static_cast<uint32_t>(chunk_bytes)) {
  uint64_t cells = 1;
  for (size_t i = 0; i < space.sizes.size(); ++i) {
    grid_.push_back(divided_up(space.sizes[i], layout.chunk[i]));
    if (__builtin_mul_overflow(cells, grid_.back(), &cells)) {
      file.damaged(layout.address, "a dataset of more chunks than 64 bits can count");
    }
  }
  if (layout.address == kHdf5Undefined || cells == 0) return;
  if (layout.index == Hdf5Index::kImplicit) {
    uint64_t all = chunk_bytes;
    steps_.resize(grid_.size());
    for (size_t i = grid_.size(); i-- > 0;) {
      steps_[i] = all;
      const uint64_t most = divided_up(space.most[i], layout.chunk[i]);
      if (__builtin_mul_overflow(all, most, &all)) all = UINT64_MAX;
    }
    if (filtered || !file.holds(layout.address, all)) {
      file.damaged(layout.address, "chunks that are not inside the file");
    }
    first_ = layout.address;
    return;
  }
  const std::vector<Found> found =
      IndexReader(file, layout, space, grid_, chunk_bytes, filtered).read();
  places_.reserve(found.size());
  for (const Found& each : found) places_.push_back(each.chunk);
  if (found.size() == cells) return;
  cells_.reserve(found.size());
  for (const Found& each : found) cells_.push_back(each.cell);
}

std::optional<Hdf5Chunk> Hdf5ChunkIndex::next(uint64_t& cell, uint64_t end) const {
  if (cell >= end) return {};
  if (first_ != kHdf5Undefined) {
    uint64_t address = first_, rest = cell;
    for (size_t i = grid_.size(); i-- > 0; rest /= grid_[i]) address += rest % grid_[i] * steps_[i];
    return Hdf5Chunk{address, chunk_bytes_, 0};
  }
  if (cells_.empty()) return cell < places_.size() ? std::optional(places_[cell]) : std::nullopt;
  const auto at = std::lower_bound(cells_.begin(), cells_.end(), cell);
  if (at == cells_.end() || *at >= end) return {};
  cell = *at;
  return places_[static_cast<size_t>(at - cells_.begin())];
}

void Hdf5ChunkIndex::add_to(Fingerprint& print) const {
  print.add(first_);
  for (uint64_t cell : cells_) print.add(cell);
  for (const Hdf5Chunk& chunk : places_) {
    print.add(chunk.address);
    print.add(uint64_t{chunk.bytes} << 32 | chunk.mask);
  }
}

}  // namespace headrace
